"""Pages as reference works write them: a long first sentence, the author and the year further down, people, places and
dates in between.

Only training has them. Pages made of short templates teach that the first sentence answers "who made it"; here it often
names nobody, and other people stand nearer.
"""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

from articles import Fact, Page, filler_fact, make_page, relation_question, row_fact
from facts import TAUGHT
from grammar import expand, fill, sentence_case
from names import person_name, stem, thing_name
from odd import aside
from salad import noun, number, phrase
from words import MONTHS, VERBS, article, past, plural, third

PROSE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prose.toml").read_text())
_WORDS: dict[str, list[str]] = PROSE["words"]
_SHARE = 0.35  # of the pages about languages in training
_ORIGIN = (("creator",), ("creator", "year"), ("creator", "year"), ("creator_year",), ("year",), ())
_REST = ("naming", "inspiration", "implementation", "instructions", "memory", "turing")


def any_page(
    rng: random.Random, held_out: bool, size: int, others: list[str], salad_share: float, prose: float = 0.0
) -> Page:
    """A page as `make_page` makes it, in training sometimes one of these."""
    if not held_out and rng.random() < _SHARE:
        return reference_page(rng, size)
    return make_page(rng, held_out, size, others, salad_share, prose)


def reference_page(rng: random.Random, size: int) -> Page:
    """A page of about `size` sentences about a language."""
    page = Page(thing_name(rng), "language")
    if rng.random() < 0.25:
        page.facts.append(_told(page, "intro", rng))
        wanted: list[str] = []
    else:
        page.facts.append(_told(page, "opening", rng))
        wanted = list(rng.choice(_ORIGIN))
    wanted += rng.sample(_REST, min(len(_REST), max(0, size - 1 - len(wanted))))
    rng.shuffle(wanted)
    wanted = wanted[: max(1, size - 1)]
    for name in wanted:
        page.facts.append(_plain(page, name, rng) if rng.random() < 0.3 else _told(page, name, rng))
        draw = rng.random()
        if draw < 0.3:
            page.facts.append(_other(page, rng))
        elif draw < 0.4:
            page.facts.append(filler_fact(page, rng, False))
    return page


def _place(rng: random.Random) -> str:
    return rng.choice(_WORDS["places"]).format(stem(rng).capitalize())


def _clause(rng: random.Random) -> str:
    """A short clause with a subject of its own."""
    verb = rng.choice(VERBS)
    return rng.choice(
        (
            f"the {noun(rng)} {third(verb)} {phrase(rng)}",
            f"every {noun(rng)} is {past(verb)} by {phrase(rng)}",
            f"{plural(noun(rng))} {verb} {phrase(rng)}",
            f"no {noun(rng)} can {verb} {phrase(rng)}",
            f"it {third(verb)} {phrase(rng)}",
            f"the {noun(rng)} was {past(verb)} {rng.choice(('in', 'near', 'at'))} {_place(rng)}",
        )
    )


def _values(name: str, rng: random.Random) -> dict[str, str]:
    year, verb = rng.randint(1900, 2025), rng.choice(VERBS)
    day, month = rng.randint(1, 28), rng.choice(MONTHS)
    trade = rng.choice(_WORDS["trades"])
    job = f"{rng.choice(_WORDS['nations'])} {trade}" if rng.random() < 0.6 else trade
    return {
        "S": "{S}",
        "N": name,
        "P": person_name(rng),
        "R": person_name(rng),
        "J": ("the " + job) if rng.random() < 0.4 else article(job),
        "Y": str(year),
        "Z": str(year + rng.randint(20, 90)),
        "D": rng.choice((f"{day} {month} {year}", f"{month} {day}, {year}", f"{day} {month} {year}")),
        "B": _place(rng),
        "T": thing_name(rng),
        "K": number(rng),
        "A": rng.choice(_WORDS["adjectives"]),
        "E": _clause(rng),
        "F": _clause(rng),
        "W": phrase(rng),
        "U": phrase(rng),
        "V": plural(noun(rng)),
        "L": stem(rng),
        "n": noun(rng),
        "vs": third(verb),
        "vd": past(verb),
    }


def _printed(template: str, values: dict[str, str], page: Page, rng: random.Random) -> str:
    text = fill(template, values)
    note = f" {aside(rng)}" if not page.facts and rng.random() < 0.15 else ""
    subject = page.name + note
    if page.facts and rng.random() < 0.5:
        subject = rng.choice(TAUGHT["language"].pronouns)
    if text.startswith("{S}"):
        return text.replace("{S}", subject)
    if note and text.startswith(page.name):
        return subject + text[len(page.name) :]
    return sentence_case(text)


def _told(page: Page, name: str, rng: random.Random) -> Fact:
    """A fact of the page in a sentence of `prose.toml`, asked for as usual or by the questions given there."""
    row = PROSE[name]
    values = _values(page.name, rng)
    template = expand(rng.choice(row["statements"]), rng)
    printed = _printed(template, values, page, rng)
    if "questions" in row:
        questions = tuple(fill(expand(rng.choice(row["questions"]), rng), values) for _ in range(3))
    else:
        questions = tuple(
            relation_question("language", row["relation"], page.name, rng, False) for _ in range(3)
        )
    keys = tuple(values[k] for k in row["keys"] if values[k] in printed) or (printed.split()[-1],)
    mentions = (values["T"],) if values["T"] in printed else ()
    return Fact(row["relation"], printed, questions, keys, mentions)


def _plain(page: Page, name: str, rng: random.Random) -> Fact:
    """The same fact in one of the usual short sentences."""
    row = next(r for r in TAUGHT["language"].rows if r.relation == name)
    return row_fact(page, row, rng, False, [])


def _other(page: Page, rng: random.Random) -> Fact:
    """A sentence about something that nobody asks of other languages."""
    row = rng.choice([r for r in PROSE["others"] if not page.has(r.get("relation", ""))])
    values = _values(page.name, rng)
    printed = _printed(expand(row["statement"], rng), values, page, rng)
    shown = [q for q in row["questions"] if all(values.get(f, f) in printed for f in _fields(q))]
    questions = tuple(fill(expand(rng.choice(shown), rng), values) for _ in range(3))
    return Fact(row.get("relation", "salad"), printed, questions, (printed[-12:],))


def _fields(template: str) -> list[str]:
    """The fields of a question that the page must show; its name and the noun need not stand in the sentence."""
    return [part[:1] for part in template.split("{")[1:] if part[:1] not in "Nn"]
