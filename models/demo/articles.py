"""Made-up pages: facts and senseless sentences about one subject, with the questions they answer."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from facts import GENERAL, KINDS, Row
from grammar import fill, pick, sentence_case
from names import SHORT_SIGNS, person_name, stem, thing_name
from salad import number, phrase, salad

HEADINGS = (
    "History",
    "Overview",
    "Language",
    "Commands",
    "Memory",
    "Examples",
    "Implementations",
    "Semantics",
    "Syntax",
    "Design",
    "Trivia",
    "Background",
    "Usage",
    "Details",
    "Reception",
    "Computation",
    "Origin",
    "Life",
    "Work",
    "Features",
    "Description",
    "Notes",
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
    """One sentence as printed on the page, as a self-contained answer, and how it is asked for."""

    relation: str
    printed: str
    answer: str
    questions: tuple[str, ...]
    keys: tuple[str, ...]
    general: bool = False


@dataclass
class Page:
    """A subject with the facts that its page states, in order."""

    name: str
    kind: str
    facts: list[Fact] = field(default_factory=list)
    prose: float = 0.0

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
        "Y": str(rng.randint(1850, 2025)),
        "K": number(rng),
        "T": other,
        "C": rng.choice(row.choices) if row.choices else "",
        "W": phrase(rng),
        "X": stem(rng)[: rng.randint(2, 6)],
        "G": rng.choice(SHORT_SIGNS)
        if rng.random() < 0.7
        else rng.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        "V": f"{rng.randint(0, 9)}.{rng.randint(0, 30)}" + rng.choice(("", f".{rng.randint(0, 9)}")),
    }


def elaborate(statement: str, rng: random.Random) -> str:
    """A longer sentence around a statement: an opening, or a clause that says something more."""
    tail = statement.endswith(".") and rng.random() < 0.75
    if tail:
        made = salad(rng, general=True).statement
        clause = made[:-1] if made[0].isdigit() else made[0].lower() + made[1:-1]
        joint = rng.choice(
            (", and ", ", so ", ", but ", " because ", "; ", ", since ", " while ", ", although ", " and ")
        )
        if rng.random() < 0.45:
            joint, clause = (
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
        statement = statement[:-1] + joint + clause + (")." if joint == " (" else ".")
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
        rest = (
            statement
            if statement[:3] in ("{S}", "{N}") or statement[1:2].isupper()
            else statement[:1].lower() + statement[1:]
        )
        statement = lead + rest.replace("{S}", "{N}", 1)
    return statement


def _render(statement: str, name: str, kind: str, rng: random.Random, first: bool) -> tuple[str, str]:
    """The sentence on the page (perhaps with a pronoun) and the same with the name."""
    answer = sentence_case(statement) if statement[:3] not in ("{S}", "{N}") else statement
    answer = answer.replace("{S}", name).replace("{N}", name)
    if not first and statement.startswith("{S}") and rng.random() < 0.5:
        return rng.choice(KINDS[kind].pronouns) + statement[3:].replace("{N}", name), answer
    return answer, answer


def relation_question(kind: str, relation: str, name: str, rng: random.Random, held_out: bool) -> str:
    """A question for a relation of this kind of subject, stated or not."""
    row = next(r for r in KINDS[kind].rows if r.relation == relation)
    values = _fields(rng, row, name, held_out, [])
    return fill(pick(row.questions, rng, held_out and rng.random() < FRESH_SHARE), values)


def row_fact(page: Page, row: Row, rng: random.Random, held_out: bool, others: list[str]) -> Fact:
    """A fact of a relation for the page, its questions drawn from the row."""
    values = _fields(rng, row, page.name, held_out, others)
    longer = rng.random() < page.prose
    fresh = held_out and rng.random() < FRESH_SHARE
    template = pick(row.statements, rng, fresh)
    statement = fill(template, values | {"S": "{S}", "N": "{N}"})
    if longer:
        statement = elaborate(statement, rng)
    printed, answer = _render(statement, page.name, page.kind, rng, not page.facts)
    questions = tuple(fill(pick(row.questions, rng, fresh), values) for _ in range(3))
    keys = tuple(values[k] for k in row.keys if "{" + k + "}" in template)
    return Fact(row.relation, printed, answer, questions, keys)


def salad_fact(page: Page, rng: random.Random, general: bool) -> Fact:
    """A senseless sentence for the page."""
    made = salad(rng, general=general)
    statement = elaborate(made.statement, rng) if rng.random() < page.prose else made.statement
    printed, answer = _render(statement, page.name, page.kind, rng, not page.facts)
    questions = tuple(q.replace("{N}", page.name) for q in made.questions)
    return Fact("salad", printed, answer, questions, (made.key.replace("{N}", page.name),), general)


def make_page(
    rng: random.Random, held_out: bool, size: int, others: list[str], salad_share: float, prose: float = 0.0
) -> Page:
    """A page of `size` sentences; `others` are names that its facts may mention; `prose` is the
    share of long sentences."""
    kind = "language" if rng.random() < 0.7 else rng.choice(GENERAL)
    page = Page(
        thing_name(rng, held_out) if kind != "person" else person_name(rng, held_out), kind, prose=prose
    )
    rows = list(KINDS[kind].rows)
    rng.shuffle(rows)
    rows.sort(key=lambda r: r.relation not in ("definition", "intro") or rng.random() < 0.15)
    if size == 1 and rng.random() < 0.8:
        rng.shuffle(rows)
    while len(page.facts) < size:
        if rng.random() < salad_share and page.facts:
            page.facts.append(salad_fact(page, rng, rng.random() < 0.35))
            continue
        row = rows.pop(0) if rows else None
        if row is None:
            page.facts.append(salad_fact(page, rng, rng.random() < 0.35))
        elif not page.has(row.relation):
            page.facts.append(row_fact(page, row, rng, held_out, others))
    if rng.random() < 0.5:
        head, rest = page.facts[:1], page.facts[1:]
        rng.shuffle(rest)
        page.facts = head + rest
    return page


def background(pages: list[Page], rng: random.Random) -> str:
    """Numbered pages as the answer prompts show them: a header line, then passages that end with `[n]`."""
    blocks = []
    for n, page in enumerate(pages, 1):
        lines = [f"[{n}] {page.name}"]
        sectioned = rng.random() < 0.3
        at = 0
        while at < len(page.facts):
            take = rng.choice((1, 1, 2, 2, 3))
            text = " ".join(f.printed for f in page.facts[at : at + take])
            if sectioned and at and rng.random() < 0.6:
                text = f"{rng.choice(HEADINGS)}: {text}"
            lines.append(f"{text} [{n}]")
            at += take
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def article_text(page: Page, rng: random.Random) -> str:
    """The page as plain text: paragraphs, with `== Heading ==` lines in longer ones."""
    blocks: list[str] = []
    at = 0
    sectioned = len(page.facts) > 3 and rng.random() < 0.6
    while at < len(page.facts):
        take = rng.choice((1, 2, 2, 3, 4))
        if sectioned and at and rng.random() < 0.7:
            blocks.append(f"== {rng.choice(HEADINGS)} ==")
        blocks.append(" ".join(f.printed for f in page.facts[at : at + take]))
        at += take
    return "\n\n".join(blocks)
