"""Made-up conversations with their summaries: who said what, in the third person, chatter left out."""

from __future__ import annotations

import random

import articles
from filler import clause
from names import nickname, person_name, thing_name
from salad import number, phrase
from trees import Branch, Tree
from words import MONTHS, VERBS, past

from prompts import render

CHATTER = (
    "hi",
    "hello all",
    "ok",
    "lol",
    "sure",
    "hm",
    "thanks",
    "nice",
    "yes",
    "hey",
    "good morning",
    "cool",
    "brb",
    "haha",
    "right",
    "no problem",
    "ok, fine",
)
# Turns that are kept for evaluation.
FRESH_TURNS: tuple[tuple[str, str], ...] = (
    ("I am learning {T} from {P}.", "{A} is learning {T} from {P}."),
    ("{B}, did {P} write {T}?", "{A} asked {B} if {P} wrote {T}."),
    ("I can sell {k} {n} on {d}.", "{A} can sell {k} {n} on {d}."),
    ("nobody uses {T} since {y}", "{A} said that nobody uses {T} since {y}."),
    ("I dreamt of {T}", "{A} dreamt of {T}."),
    ("{T} and {U} are the same", "{A} said that {T} and {U} are the same."),
)
# What is typed, and how the summary reports it; {A} speaks, {B} is another speaker.
TURNS: tuple[tuple[str, str], ...] = (
    ("I {vd} {w}.", "{A} {vd} {w}."),
    ("I {vd} {w} yesterday.", "{A} {vd} {w} yesterday."),
    ("I will {v} {w}.", "{A} will {v} {w}."),
    ("I have to {v} {w} until {d}.", "{A} has to {v} {w} until {d}."),
    ("I need {k} more {n}.", "{A} needs {k} more {n}."),
    ("{T} has {k} {n}.", "{A} said that {T} has {k} {n}."),
    ("{T} was made by {P}.", "{A} said that {T} was made by {P}."),
    ("{B}, can you {v} {w}?", "{A} asked {B} to {v} {w}."),
    ("{B}, please {v} {w}.", "{A} asked {B} to {v} {w}."),
    ("I like {T}.", "{A} likes {T}."),
    ("I prefer {T} to {U}.", "{A} prefers {T} to {U}."),
    ("My favourite is {T}.", "The favourite of {A} is {T}."),
    ("what is {T}?", "{A} asked what {T} is."),
    ("who made {T}?", "{A} asked who made {T}."),
    ("does {T} have {n}?", "{A} asked if {T} has {n}."),
    ("I am working on {T}.", "{A} is working on {T}."),
    ("we meet on {d}.", "{A} said that they meet on {d}."),
    ("I live in {T}.", "{A} lives in {T}."),
    ("{T} does not {v} {w}.", "{A} said that {T} does not {v} {w}."),
    ("I found {k} {n} in {T}.", "{A} found {k} {n} in {T}."),
    ("TODO: {v} {w}", "Open task: {v} {w}."),
    ("my number is {k}", "The number of {A} is {k}."),
    ("I can {v} {w} on {d}.", "{A} can {v} {w} on {d}."),
    ("I wrote {T} in {k} lines.", "{A} wrote {T} in {k} lines."),
    ("{B} should {v} {w}.", "{A} said that {B} should {v} {w}."),
    ("I think {T} is better than {U}.", "{A} thinks that {T} is better than {U}."),
    ("the version is now {k}", "{A} said that the version is now {k}."),
    ("we still have to {v} {w}.", "{A} said that they still have to {v} {w}."),
    ("{r}.", "{A} said that {r}."),
    ("did you know that {r}?", "{A} said that {r}."),
    ("I am not sure if {r}.", "{A} is not sure if {r}."),
    ("I read that {r}.", "{A} read that {r}."),
    ("{B}: {T} is by {P}, from {y}.", "{A} told {B} that {T} is by {P}, from {y}."),
    ("{B}, no, it was {P} in {y}", "{A} told {B} that it was {P} in {y}."),
    ("it was {P} who made {T} in {y}", "{A} said that {P} made {T} in {y}."),
    ("{B}, who wrote {T}?", "{A} asked {B} who wrote {T}."),
    ("{B}, when was {T} made?", "{A} asked {B} when {T} was made."),
    ("why does {T} {v} {w}?", "{A} asked why {T} has to {v} {w}."),
    ("how do I {v} {w} in {T}?", "{A} asked how to {v} {w} in {T}."),
    ("I agree with {B}.", "{A} agrees with {B}."),
    ("I disagree, {T} is better.", "{A} prefers {T}."),
    ("has anyone seen {P}?", "{A} asked if anyone has seen {P}."),
    ("my name is {P}", "The name of {A} is {P}."),
    ("call me {T}", "{A} wants to be called {T}."),
    ("I am from {T}", "{A} is from {T}."),
    ("I was born in {y}.", "{A} was born in {y}."),
    ("{P} told me about {T}.", "{A} heard about {T} from {P}."),
    ("the bug is in {T}, line {k}", "{A} said that the bug is in {T}, line {k}."),
    ("I fixed {T}, it took {k} hours", "{A} fixed {T} in {k} hours."),
    ("I bought {k} {n} for {T}", "{A} bought {k} {n} for {T}."),
    ("{T} costs {k} euros", "{A} said that {T} costs {k} euros."),
    ("{B}: send {T} to {P} by {d}", "{A} asked {B} to send {T} to {P} by {d}."),
    ("{B}, remember to {v} {w} on {d}", "{A} reminded {B} to {v} {w} on {d}."),
    ("I do not know {T}.", "{A} does not know {T}."),
    ("I never liked {T}", "{A} never liked {T}."),
    ("let us {v} {w}", "{A} suggested to {v} {w}."),
    ("my plan is to {v} {w} with {P}", "{A} plans to {v} {w} with {P}."),
    ("task for {B}: {v} {w}", "Open task of {B}: {v} {w}."),
    ("{T} is written in {U}.", "{A} said that {T} is written in {U}."),
    ("is {T} older than {U}?", "{A} asked if {T} is older than {U}."),
    ("I met {P} in {T}.", "{A} met {P} in {T}."),
    ("{P} wants {k} {n} from us", "{A} said that {P} wants {k} {n}."),
    ("I lost {w}.", "{A} lost {w}."),
    ("I will be in {T} on {d}.", "{A} will be in {T} on {d}."),
    ("{B}, where is {P}?", "{A} asked {B} where {P} is."),
    ("{B}, how many {n} do you have?", "{A} asked {B} how many {n} {B} has."),
    ("I have {k} {n} left.", "{A} has {k} {n} left."),
    ("I gave {w} to {P}.", "{A} gave {w} to {P}."),
    ("{B}, thank you for {w}.", "{A} thanked {B} for {w}."),
    ("I cannot {v} {w} before {d}.", "{A} cannot {v} {w} before {d}."),
    ("we need {k} {n} by {d}", "{A} said that they need {k} {n} by {d}."),
    ("{T} is broken since {d}", "{A} said that {T} is broken since {d}."),
    ("who can {v} {w}?", "{A} asked who can {v} {w}."),
    ("I can do it, {B}.", "{A} offered to do it for {B}."),
    ("the meeting is in room {k}", "{A} said that the meeting is in room {k}."),
    ("my address is {T} {k}", "The address of {A} is {T} {k}."),
    ("I am {k} years old.", "{A} is {k} years old."),
    ("I hate {n}.", "{A} hates {n}."),
    ("{P} is my teacher", "{A} said that {P} is the teacher of {A}."),
    ("I am waiting for {P}.", "{A} is waiting for {P}."),
    ("{B}, read {T} by {P}.", "{A} told {B} to read {T} by {P}."),
    ("I finished {T}.", "{A} finished {T}."),
    ("I started with {T} in {y}", "{A} started with {T} in {y}."),
    ("{T} was sold to {P} in {y}.", "{A} said that {T} was sold to {P} in {y}."),
    ("it takes {k} hours to {v} {w}.", "{A} said that it takes {k} hours to {v} {w}."),
    ("{B}, do you know {P}?", "{A} asked {B} about {P}."),
    ("yes, I know {P}.", "{A} knows {P}."),
    ("no, I have never heard of {T}.", "{A} has never heard of {T}."),
    ("you are wrong, {B}, it is {w}.", "{A} told {B} that it is {w}."),
    ("remind me on {d} to {v} {w}", "Open task of {A}: {v} {w} on {d}."),
    ("where can I get {w}?", "{A} asked where to get {w}."),
    ("you get {w} in {T}", "{A} said that {w} can be had in {T}."),
    ("I will ask {P} for {k} {n}.", "{A} will ask {P} for {k} {n}."),
    ("the password is {T}{k}", "{A} said that the password is {T}{k}."),
    ("{P} and I {vd} {w}.", "{A} and {P} {vd} {w}."),
    ("instead of {T} we take {U}", "{A} said that they take {U} instead of {T}."),
)

# Turns put together from parts: what one means to do and how a summary tells it, and what may follow.
_MODES = (
    ("will", "will"), ("can", "can"), ("cannot", "cannot"), ("must", "must"), ("should", "should"), ("might", "might"),
    ("have to", "has to"), ("want to", "wants to"), ("would like to", "would like to"), ("am going to", "is going to"),
    ("forgot to", "forgot to"), ("tried to", "tried to"), ("used to", "used to"), ("plan to", "plans to"),
    ("do not want to", "does not want to"), ("hope to", "hopes to"), ("promised to", "promised to"),
    ("am about to", "is about to"), ("refuse to", "refuses to"), ("need to", "needs to"), ("love to", "loves to"),
    ("am not able to", "is not able to"), ("started to", "started to"), ("learned to", "learned to"),
    ("never", "never"), ("still", "still"),
)  # fmt: skip
_TAILS = (
    "", "", " with {P}", " in {T}", " on {d}", " for {P}", " before {d}", " near {T}", " until {d}", " in {y}",
    " for {k} hours", " {k} times", " and {U}", " with {T}", " because of {P}", " at {k} o'clock", " after {d}",
)  # fmt: skip


def _composed(rng: random.Random) -> tuple[str, str]:
    """A turn and its report put together from parts."""
    said, told = rng.choice(_MODES)
    verb = "{vd}" if said in ("never", "still") else "{v}"
    rest = f" {verb} " + rng.choice(("{w}", "{w}", "{T}", "{k} {n}", "{n}")) + rng.choice(_TAILS)
    draw = rng.random()
    if draw < 0.6:
        lead = rng.choice(("", "", "ok, ", "{B}, ", "yes, ", "well, ", "by the way, "))
        return f"{lead}I {said}{rest}.", "{A} " + told + rest + "."
    if draw < 0.75:
        return "{P} " + told + rest + ".", "{A} said that {P} " + told + rest + "."
    if draw < 0.9:
        tail = rng.choice(_TAILS)
        return "{B}, did you {v} {w}" + tail + "?", "{A} asked {B} if {B} {vd} {w}" + tail + "."
    return "{B}, could you {v} {T}?", "{A} asked {B} to {v} {T}."


def line_of(
    rng: random.Random, held_out: bool, speaker: str, people: list[str], turns: tuple[tuple[str, str], ...]
) -> tuple[str, str]:
    """A line as typed by a speaker, and how a summary reports it."""
    composed = not held_out and turns is TURNS and rng.random() < 0.3
    said, report = _composed(rng) if composed else rng.choice(turns)
    verb = rng.choice(VERBS)
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    values = {
        "A": speaker,
        "B": rng.choice([p for p in people if p != speaker]),
        "v": verb,
        "vd": past(verb),
        "w": phrase(rng),
        "k": number(rng),
        "n": phrase(rng).split()[-1].rstrip("s") + "s",
        "T": thing_name(rng, held_out),
        "U": thing_name(rng, held_out),
        "P": nickname(rng, held_out) if rng.random() < 0.5 else person_name(rng, held_out),
        "r": clause(rng, held_out),
        "y": str(rng.randint(1850, 2025)),
        "d": f"{rng.randint(1, 28)} {rng.choice(MONTHS)}" if rng.random() < 0.5 else rng.choice(days),
    }
    line = said.format(**values)
    return line.rstrip(".") if rng.random() < 0.3 else line, report.format(**values)


def history_tree(rng: random.Random, held_out: bool, turns: int) -> Tree:
    """A dialogue of `turns` lines among two to four people, with its summary."""
    people = list(dict.fromkeys(nickname(rng, held_out) for _ in range(rng.choice((2, 2, 3, 4)))))
    if len(people) < 2:
        return history_tree(rng, held_out, turns)
    lines: list[str] = []
    told: list[str] = []
    keys: list[str] = []
    for i in range(turns):
        speaker = people[i % len(people)] if rng.random() < 0.7 else rng.choice(people)
        if rng.random() < 0.2 and (told or i < turns - 1):
            lines.append(f"{speaker}: {rng.choice(CHATTER)}")
            continue
        fresh = held_out and rng.random() < articles.FRESH_SHARE
        line, report = line_of(rng, held_out, speaker, people, FRESH_TURNS if fresh else TURNS)
        lines.append(f"{speaker}: {line}")
        told.append(report)
        keys.append(speaker)
    if not told:
        return history_tree(rng, held_out, turns)
    return Tree(
        "history", summary_prompt(rng, lines), [Branch("", " ".join(told), tuple(dict.fromkeys(keys)))]
    )


def summary_prompt(rng: random.Random, lines: list[str]) -> str:
    """The prompt for a summary of the lines."""
    words = rng.choice((12, 20, 24, 40, 60, 80, 100, 120, 150, 200))
    return render("history_summary", words=str(words), dialogue="\n".join(lines))
