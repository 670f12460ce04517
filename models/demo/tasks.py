"""Examples of every job in the product's prompts: a shared beginning and the branches that continue it.

A tree is one prompt beginning with several endings (questions on the same background), each with its target.
Training runs the beginning once; each branch sees only the beginning and itself, exactly as a separate prompt.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from articles import Fact, Page, article_text, background, make_page, relation_question, salad_fact
from facts import KINDS
from names import nickname, thing_name, typo
from salad import vague
from words import ADJECTIVES, ADVERBS, NOUNS, TECH_NOUNS, VERBS

from prompts import NOTHING, REFUSAL, answer_styles, render

SMALL = (
    "what",
    "who",
    "the",
    "of",
    "is",
    "does",
    "a",
    "in",
    "how",
    "why",
    "when",
    "and",
    "to",
    "was",
    "for",
    "do",
    "about",
    "with",
    "me",
    "idea",
    "person",
    "name",
    "sort",
    "kind",
    "people",
    "language",
    "thing",
    "used",
    "made",
    "write",
    "term",
)
COMMON = frozenset(NOUNS + TECH_NOUNS + VERBS + ADVERBS + ADJECTIVES)
LEADS = (
    "please tell me, ",
    "hey, ",
    "hi, ",
    "quick question: ",
    "i wonder ",
    "hearth: ",
    "hearth, ",
    "ok so ",
    "well, ",
)


@dataclass(frozen=True)
class Branch:
    """One ending of a prompt, its target text and what an evaluation looks for in the reply."""

    suffix: str
    target: str
    keys: tuple[str, ...] = ()
    page: int = 0
    entities: tuple[str, ...] = ()


@dataclass
class Tree:
    """A job's shared prompt beginning with its branches; the texts join without a separator."""

    job: str
    prefix: str
    branches: list[Branch] = field(default_factory=list)


def typed(question: str, names: tuple[str, ...], rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """The question as a person types it, and the names as they then stand in it."""
    text, shown = question, names
    if rng.random() < 0.3:
        text, shown = text.lower(), tuple(n.lower() for n in names)
    elif rng.random() < 0.5:
        text = text[:1].upper() + text[1:]
    if rng.random() < 0.08:
        for _ in range(4):
            slipped = typo(text, rng)
            if all(n in slipped for n in shown):
                text = slipped
                break
    if rng.random() < 0.08:
        text = rng.choice(LEADS) + text
    end = rng.random()
    if end < 0.5:
        text += "?"
    elif end < 0.54:
        text += rng.choice((" ?", "??", "...", ".", " pls", " thanks"))
    return text, tuple(n if n in text else n[:1].upper() + n[1:] for n in shown)


def split(text: str, marker: str) -> tuple[str, str]:
    """Cut a prompt before the last occurrence of a marker."""
    at = text.rindex(marker)
    return text[:at], text[at:]


def scattered(name: str, rng: random.Random) -> str:
    """A name among common words in no order: what is not common is the name."""
    common = [
        rng.choice(rng.choice((NOUNS, TECH_NOUNS, VERBS, ADVERBS, ADJECTIVES, SMALL, SMALL)))
        for _ in range(rng.randint(1, 6))
    ]
    at = rng.randint(0, len(common))
    return " ".join([*common[:at], name, *common[at:]])


def terms_tree(rng: random.Random, held_out: bool, branches: int) -> Tree:
    """Search terms: the names in the question, or its key phrase when it has none."""
    subject = "esoteric programming languages" if rng.random() < 0.5 else vague(rng)
    tree = Tree("terms", "")
    for _ in range(branches):
        page = make_page(rng, held_out, 2, [], 0.3)
        shape = rng.random()
        names: tuple[str, ...] = (page.name,)
        if shape < 0.2 and COMMON.isdisjoint(page.name.lower().split()):
            question = scattered(page.name, rng)
        elif shape < 0.75:
            question = rng.choice(rng.choice(page.facts).questions)
            if page.name not in question:
                continue
        elif shape < 0.9:
            other = thing_name(rng, held_out)
            question = rng.choice(
                (
                    "which is older, {a} or {b}",
                    "what do {a} and {b} have in common",
                    "compare {a} and {b}",
                    "is {a} based on {b}",
                    "what is the difference between {a} and {b}",
                    "{a} vs {b}",
                    "does {a} have more {c} than {b}",
                    "who made {a} and {b}",
                    "is {a} faster than {b}",
                    "can {a} be compiled to {b}",
                    "how is {a} related to {b}",
                )
            ).format(a=page.name, b=other, c=vague(rng).split()[-1])
            names = (page.name, other)
        else:
            topic = vague(rng)
            question = rng.choice(
                (
                    "which languages use {t}",
                    "list languages with {t}",
                    "what languages are about {t}",
                    "is there a language made of {t}",
                    "which language has {t}",
                    "languages based on {t}",
                    "who likes {t}",
                    "how do {t} work",
                    "what are {t}",
                    "find something about {t}",
                    "why do people use {t}",
                    "where can i read about {t}",
                    "are there any {t} here",
                )
            ).format(t=topic)
            names = (topic,)
        if rng.random() < 0.25:
            question, names = question.lower(), tuple(n.lower() for n in names)
        question, shown = typed(question, names, rng)
        text = render("search_terms", subject=subject, question=question)
        tree.prefix, suffix = split(text, "Question: ")
        target = json.dumps(list(shown), ensure_ascii=False)
        tree.branches.append(Branch(suffix, target, entities=shown))
    return tree if tree.branches else terms_tree(rng, held_out, branches)


def cited(fact: Fact, page: int) -> str:
    """A fact as an answer with its source."""
    return f"{fact.answer} [{page}]"


def missing_question(
    page: Page, rng: random.Random, held_out: bool, wanted: list[str]
) -> tuple[str, str] | None:
    """A question that the page does not answer, preferring relations that other pages state; with its relation."""
    absent = [
        r.relation
        for r in KINDS[page.kind].rows
        if not page.has(r.relation) and r.relation not in ("definition", "intro")
    ]
    hard = [r for r in absent if r in wanted]
    if rng.random() < 0.2 or not absent:
        probe = Page(page.name, page.kind, page.facts)
        for _ in range(5):
            made = salad_fact(probe, rng, False)
            question = rng.choice(made.questions)
            rest = [
                w
                for w in question.replace(page.name, "").split()
                if len(w) > 3 and w not in ("what", "does", "have", "when", "where", "must")
            ]
            printed = " ".join(f.printed for f in page.facts)
            if page.name in question and rest and not any(w[:5] in printed for w in rest):
                return question, "salad"
        return None
    relation = rng.choice(hard) if hard and rng.random() < 0.7 else rng.choice(absent)
    return relation_question(page.kind, relation, page.name, rng, held_out), relation


def answer_tree(
    rng: random.Random, held_out: bool, pages: int, facts: int, branches: int, refusals: float = 0.25
) -> Tree:
    """Answers with citations from numbered pages, refusals included."""
    made: list[Page] = []
    salad_share = rng.choice((0.0, 0.0, 0.2, 0.5))
    prose = rng.choice((0.0, 0.0, 0.0, 0.3, 0.6))
    for _ in range(pages):
        size = max(1, facts + rng.randint(-1, 1))
        made.append(make_page(rng, held_out, size, [p.name for p in made], salad_share, prose))
    back = background(made, rng)
    tree = Tree("answer", "")
    style = rng.choice(answer_styles())
    open_facts = [(n, p, f) for n, p in enumerate(made, 1) for f in p.facts]
    rng.shuffle(open_facts)
    stated = [f.relation for p in made for f in p.facts]
    for _ in range(branches):
        n, page, entities, keys = 0, made[0], (), ()
        if rng.random() < refusals or not open_facts:
            if rng.random() < 0.3:
                stranger = make_page(rng, held_out, 2, [], 0.2)
                question = rng.choice(rng.choice(stranger.facts).questions)
                if stranger.name not in question:
                    continue
                entities = (stranger.name,)
            else:
                page = rng.choice(made)
                found = missing_question(page, rng, held_out, stated)
                if found is None:
                    continue
                question, entities = found[0], (page.name,)
            target = REFUSAL
        else:
            n, page, fact = open_facts.pop()
            both = [f for f in page.facts if f.relation == "year"] if fact.relation == "creator" else []
            question, target, keys, entities = (
                rng.choice(fact.questions),
                cited(fact, n),
                fact.keys,
                (page.name,),
            )
            if both and rng.random() < 0.3:
                question = rng.choice(
                    (f"who made {page.name} and when", f"who created {page.name} and in which year")
                )
                target = f"{target} {cited(both[0], n)}"
                keys = (*keys, *both[0].keys)
        question, _ = typed(question, entities, rng)
        text = render(style, background=back, question=question)
        tree.prefix, suffix = split(text, "Question: ")
        tree.branches.append(Branch(suffix, target, keys, n, entities))
    return tree if tree.branches else answer_tree(rng, held_out, pages, facts, branches, refusals)


def compact_tree(rng: random.Random, held_out: bool, facts: int) -> Tree:
    """Compaction of one page for a question: the sentences that answer it, or that nothing does."""
    page = make_page(
        rng,
        held_out,
        max(1, facts + rng.randint(-1, 1)),
        [],
        rng.choice((0.0, 0.0, 0.2, 0.5)),
        rng.choice((0.0, 0.0, 0.0, 0.3, 0.6)),
    )
    draw = rng.random()
    keys: tuple[str, ...] = ()
    if draw < 0.25:
        found = missing_question(page, rng, held_out, [])
        while found is None:
            found = missing_question(page, rng, held_out, [])
        question, target = found[0], NOTHING
    elif draw < 0.32:
        stranger = make_page(rng, held_out, 2, [], 0.2)
        question, target = rng.choice(stranger.facts[0].questions), NOTHING
        if stranger.name not in question:
            question = f"what is {stranger.name}"
    else:
        fact = rng.choice(page.facts)
        question, target, keys = rng.choice(fact.questions), fact.answer, fact.keys
    question, _ = typed(question, (page.name,), rng)
    text = render(
        "compact_article",
        question=question,
        words=str(rng.choice((20, 30, 40, 50, 60, 80, 100))),
        title=page.name,
        text=article_text(page, rng),
    )
    return Tree("compact", text, [Branch("", target, keys, entities=(page.name,))])


def small_talk_tree(rng: random.Random) -> Tree:
    """Plain turns outside every prompt: the model says what it is."""
    hello = (
        "hello",
        "hi",
        "hey",
        "hi there",
        "hello there",
        "good morning",
        "good evening",
        "yo",
        "greetings",
        "hey hearth",
        "hello hearth",
        "xin chào",
    )
    who = (
        "who are you",
        "what are you",
        "what is your name",
        "are you a bot",
        "are you human",
        "which model are you",
        "tell me about yourself",
        "what model is this",
        "introduce yourself",
        "are you chatgpt",
        "are you gemma",
    )
    can = (
        "what can you do",
        "help",
        "can you help me",
        "how do you work",
        "what are you good at",
        "write me a poem",
        "tell me a joke",
        "what should i ask",
        "how can i get a better model",
        "can you code",
        "sing a song",
        "how are you",
        "how are you doing",
        "what's up",
    )
    thanks = (
        "thanks",
        "thank you",
        "thx",
        "ok",
        "bye",
        "good night",
        "nice",
        "cool",
        "see you",
        "great",
        "test",
        "ping",
    )
    me = "I am the small demo model of hearth. Run `hearth pull gemma-4-e2b` for a real one."
    group = rng.choice((hello, who, can, thanks))
    if group is hello:
        reply = "Hello! " + me
    elif group is thanks:
        reply = "You are welcome. " + me
    elif group is can:
        reply = "I answer questions from the wiki. " + me
    else:
        reply = me
    text = rng.choice(group)
    if rng.random() < 0.2:
        text = f"{text} {rng.choice(ADJECTIVES)} {nickname(rng)}"
    text, _ = typed(text, (), rng)
    return Tree("talk", text, [Branch("", reply, (me,))])
