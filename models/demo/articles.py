"""Made-up pages: facts and senseless sentences about one subject, with the questions they answer."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from facts import TAUGHT, Row, kinds, other_kind, relations
from filler import clause, filler, lowered
from grammar import expand, fill, pick, sentence_case
from names import SHORT_SIGNS, person_name, stem, thing_name
from odd import aside, long_word
from salad import number, phrase, salad
from words import MONTHS, VERBS, past

# What pages tell most often, and people ask.
OFTEN_ASKED = (
    "creator",
    "year",
    "creator_year",
    "intro",
    "implementation",
    "instructions",
    "inspiration",
    "naming",
    "turing",
)
# Share of the evaluation's templates that training never shows.
FRESH_SHARE = 0.5
# Relations whose questions overlap: a page holds one of a group, and a refusal never asks for a sibling.
GROUPS = {
    "inspiration": "derived",
    "variants": "derived",
    "memory": "store",
    "cells": "store",
    "types": "store",
    "purpose": "aim",
    "use": "aim",
    "invention": "aim",
    "product": "aim",
    "definition": "aim",
    "part": "aim",
    "job": "aim",
    "hello": "length",
    "limit": "length",
    "output": "io",
    "input": "io",
    "river": "aim",
    "home": "aim",
    "habitat": "aim",
}
_MADE = {
    "creator": {"creator", "creator_year", "intro"},
    "year": {"year", "creator_year", "intro"},
    "creator_year": {"creator", "year", "creator_year", "intro"},
    "definition": {"definition", "intro"},
    "intro": {"creator", "year", "creator_year", "definition", "inspiration", "intro"},
    "inspiration": {"inspiration", "variants", "intro"},
}


@dataclass(frozen=True)
class Fact:
    """One sentence as printed on the page, which is also the answer, and how it is asked for.

    `mentions` are things that the sentence names without being about them.
    """

    relation: str
    printed: str
    questions: tuple[str, ...]
    keys: tuple[str, ...]
    mentions: tuple[str, ...] = ()
    row: bool = False  # of a table; a line of its own


@dataclass
class Page:
    """A subject with the facts that its page states, in order."""

    name: str
    kind: str
    facts: list[Fact] = field(default_factory=list)
    prose: float = 0.0
    tables: float = 0.0

    def has(self, relation: str) -> bool:
        """Whether a fact of this relation or of an overlapping one is stated."""
        if relation in _MADE:
            return any(f.relation in _MADE[relation] for f in self.facts)
        group = GROUPS.get(relation, relation)
        return any(GROUPS.get(f.relation, f.relation) == group for f in self.facts)


def _fields(rng: random.Random, row: Row, name: str, held_out: bool, others: list[str]) -> dict[str, str]:
    other = rng.choice(others) if others and rng.random() < 0.4 else thing_name(rng, held_out)
    return {
        "N": name,
        "P": person_name(rng, held_out),
        "P2": person_name(rng, held_out),
        "M": rng.choice(MONTHS),
        "Y": str(rng.randint(1850, 2025)),
        "K": number(rng),
        "T": other,
        "C": rng.choice(row.choices) if row.choices else "",
        "W": phrase(rng),
        "X": stem(rng)[: rng.randint(2, 6)],
        "L": long_word(rng),
        "G": rng.choice(SHORT_SIGNS)
        if rng.random() < 0.7
        else rng.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        "V": f"{rng.randint(0, 9)}.{rng.randint(0, 30)}" + rng.choice(("", f".{rng.randint(0, 9)}")),
    }


def elaborate(statement: str, rng: random.Random, held_out: bool) -> str:
    """A longer sentence around a statement: an opening, or a clause that says something more."""
    tail = statement.endswith(".") and rng.random() < 0.75
    if tail:
        if rng.random() < 0.5:
            more = clause(rng, held_out)
        else:
            made = salad(rng, general=True).statement
            more = made[:-1] if made[0].isdigit() else made[0].lower() + made[1:-1]
        joint = rng.choice(
            (", and ", ", so ", ", but ", " because ", "; ", ", since ", " while ", ", although ", " and ")
        )
        if rng.random() < 0.45:
            joint, more = (
                rng.choice(
                    (
                        ", which is ",
                        " in the manner of ",
                        ", together with ",
                        " as well as ",
                        ", including ",
                        " with ",
                        ", like ",
                        " (",
                        ", after ",
                        " for ",
                        ", unlike ",
                        ", also called ",
                    )
                ),
                phrase(rng),
            )
        statement = statement[:-1] + joint + more + (")." if joint == " (" else ".")
    if not tail or rng.random() < 0.15:
        lead = rng.choice(
            (
                "In general, ",
                f"According to {person_name(rng)}, ",
                f"Like {phrase(rng)}, ",
                "For this reason, ",
                "However, ",
                f"In the opinion of {phrase(rng)}, ",
                "Today, ",
                "At first, ",
                f"Besides {phrase(rng)}, ",
                "In practice, ",
                f"With {phrase(rng)}, ",
                "Originally, ",
                "As a rule, ",
            )
        )
        statement = lead + lowered(statement).replace("{S}", "{N}", 1)
    return statement


def _render(statement: str, page: Page, rng: random.Random, note: str = "") -> str:
    """The sentence on the page: the subject by name or, later on the page, by a pronoun."""
    subject = page.name + note
    if statement.startswith("{S}"):
        if page.facts and rng.random() < 0.5:
            subject = rng.choice(TAUGHT[page.kind].pronouns)
        return subject + statement[3:].replace("{N}", page.name).replace("{S}", page.name)
    return sentence_case(statement).replace("{S}", page.name).replace("{N}", page.name)


def relation_question(kind: str, relation: str, name: str, rng: random.Random, held_out: bool) -> str:
    """A question for a relation of this kind of subject, stated or not."""
    row = next(r for r in kinds(held_out)[kind].rows if r.relation == relation)
    values = _fields(rng, row, name, held_out, [])
    return fill(pick(row.questions, rng, held_out and rng.random() < FRESH_SHARE), values)


def row_fact(page: Page, row: Row, rng: random.Random, held_out: bool, others: list[str]) -> Fact:
    """A fact of a relation for the page, its questions drawn from the row."""
    values = _fields(rng, row, page.name, held_out, others)
    fresh = held_out and rng.random() < FRESH_SHARE
    in_table = bool(row.label) and rng.random() < page.tables
    if in_table:
        template = (
            expand(row.label, rng)
            + rng.choice((": ", ": ", " | ", " = "))
            + ", ".join("{" + k + "}" for k in row.keys)
        )
        printed = fill(template, values)
    else:
        template = pick(row.statements, rng, fresh)
        spaces = [i for i, c in enumerate(template) if c == " "]
        if spaces and rng.random() < 0.4 * page.prose:
            at = rng.choice(spaces)
            template = f"{template[:at]} {aside(rng)}{template[at:]}"
        statement = fill(template, values | {"S": "{S}", "N": "{N}"})
        if rng.random() < page.prose:
            statement = elaborate(statement, rng, held_out)
        note = " " + aside(rng) if rng.random() < 0.25 * page.prose else ""
        printed = _render(statement, page, rng, note)
    questions = tuple(fill(pick(row.questions, rng, fresh), values) for _ in range(3))
    fields = [k for k in row.keys if "{" + k + "}" in template] or [
        k for k in "PLTW" if "{" + k + "}" in template
    ]
    keys = tuple(values[k] for k in fields)
    mentions = (values["T"],) if "{T}" in template else ()
    return Fact(row.relation, printed, questions, keys, mentions, in_table)


def salad_fact(page: Page, rng: random.Random, general: bool, held_out: bool = False) -> Fact:
    """A senseless sentence for the page."""
    made = salad(rng, general=general)
    statement = elaborate(made.statement, rng, held_out) if rng.random() < page.prose else made.statement
    questions = tuple(q.replace("{N}", page.name) for q in made.questions)
    return Fact("salad", _render(statement, page, rng), questions, (made.key.replace("{N}", page.name),))


_MAKING = ("create", "design", "develop", "invent", "publish")


def origin_of(page: Page, asked: str = "creator") -> Fact | None:
    """The fact of the page that names who made its subject, or the year."""
    return next((f for f in page.facts if f.relation in (asked, "creator_year", "intro") and f.keys), None)


def origin_question(page: Page, rng: random.Random) -> tuple[str, Fact, str] | None:
    """What is asked most, who made a language or when; with the fact that tells it and the name or year."""
    asked = "creator" if rng.random() < 0.65 else "year"
    found = origin_of(page, asked) if page.kind == "language" else None
    if found is None:
        return None
    key = found.keys[0 if asked == "creator" else -1]
    if key.isdigit() != (asked == "year") or key not in found.printed:
        return None
    return relation_question("language", asked, page.name, rng, False), found, key


def _doing(rng: random.Random) -> str:
    """What a program does: one or two verbs, perhaps a while."""
    verbs = " and ".join(rng.sample(VERBS, rng.choice((1, 2))))
    return f"{verbs} {phrase(rng)}" + rng.choice(("", f" while they {rng.choice(VERBS)}"))


def author_fact(page: Page, rng: random.Random) -> Fact | None:
    """A sentence that names the author again and says something else, where a fact of the page names one."""
    found = origin_of(page)
    if found is None:
        return None
    author = found.keys[0]
    last = rng.choice((author.split()[-1], author.split()[-1], author))
    verb, thing = rng.choice(VERBS if rng.random() < 0.5 else _MAKING), phrase(rng)
    aim = rng.choice(("goals", "ideas", "aims", "wishes", "reasons"))
    statement, question = rng.choice(
        (
            (
                f"{rng.choice(('{S}', '{N} programs', 'Programs in {N}'))} can {_doing(rng)}, "
                f"and one of {last}'s {aim} was to {verb} {thing}.",
                f"what was one of {last}'s {aim}",
            ),
            (f"One of {last}'s {aim} was to {verb} {thing}.", f"what was one of {last}'s {aim}"),
            (f"{last} {past(verb)} {thing}.", f"what did {last} {verb}"),
            (f"{last} wanted {{N}} to {verb} {thing}.", f"what should {{N}} {verb}"),
            (f"Later {last} made another language for {thing}.", f"what did {last} make later"),
        )
    )
    return Fact("salad", _render(statement, page, rng), (question.replace("{N}", page.name),), (thing,))


def filler_fact(page: Page, rng: random.Random, held_out: bool) -> Fact:
    """A real sentence for the page."""
    statement, asked, key, _ = filler(rng, held_out, held_out and rng.random() < FRESH_SHARE)
    questions = tuple(q.replace("{N}", page.name) for q in asked)
    return Fact("filler", _render(statement, page, rng), questions, (key,))


def make_page(
    rng: random.Random, held_out: bool, size: int, others: list[str], salad_share: float, prose: float = 0.0
) -> Page:
    """A page of `size` sentences; `others` are names that its facts may mention; `prose` is the
    share of long sentences."""
    kind = "language" if rng.random() < 0.7 else other_kind(rng, held_out)
    page = Page(
        thing_name(rng, held_out) if kind != "person" else person_name(rng, held_out),
        kind,
        prose=prose,
        tables=rng.choice((0.0, 0.0, 0.0, 0.3, 0.8)),
    )
    rows = relations(kind, rng, held_out)
    rng.shuffle(rows)
    rows.sort(key=lambda r: r.relation not in OFTEN_ASKED or rng.random() < 0.6)
    rows.sort(key=lambda r: r.relation not in ("definition", "intro") or rng.random() < 0.15)
    if size == 1 and rng.random() < 0.8:
        rng.shuffle(rows)
    while len(page.facts) < size:
        if rng.random() < salad_share and page.facts:
            filled = rng.random() < 0.75
            page.facts.append(
                filler_fact(page, rng, held_out)
                if filled
                else salad_fact(page, rng, rng.random() < 0.35, held_out)
            )
            continue
        row = rows.pop(0) if rows else None
        if row is None:
            page.facts.append(salad_fact(page, rng, rng.random() < 0.35, held_out))
        elif not page.has(row.relation):
            page.facts.append(row_fact(page, row, rng, held_out, others))
    again = author_fact(page, rng) if rng.random() < (0.3 if held_out else 0.4) else None
    if again:
        page.facts.append(again)
    if rng.random() < 0.5:
        head, rest = page.facts[:1], page.facts[1:]
        rng.shuffle(rest)
        page.facts = head + rest
    if rng.random() < 0.8:
        page.facts.sort(key=lambda f: f.row, reverse=rng.random() < 0.5)
    return page
