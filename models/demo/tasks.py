"""Answers with citations and compaction, in the product's prompts."""

from __future__ import annotations

import random
from dataclasses import replace

import articles
from articles import (
    Fact,
    Page,
    origin_question,
    relation_question,
    row_fact,
    salad_fact,
)
from asking import ASKING, typed
from facts import kinds, relations
from grammar import expand, fill
from layout import article_text, background
from names import thing_name
from prose import any_page
from trees import Branch, Tree, split

from prompts import NOTHING, REFUSAL, answer_styles, render


def cited(fact: Fact, page: int) -> str:
    """A fact as an answer with its source."""
    return f"{fact.printed} [{page}]"


def missing_question(
    page: Page, rng: random.Random, held_out: bool, wanted: list[str]
) -> tuple[str, str] | None:
    """A question that the page does not answer, preferring relations that other pages state; with its relation."""
    absent = [
        r.relation
        for r in relations(page.kind, rng, held_out)
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


def pair_branch(
    pages: list[Page], rng: random.Random
) -> tuple[str, str, tuple[str, ...], tuple[int, ...]] | None:
    """A question that two pages answer together, its answer with both citations, the keys and the pages."""
    asked: dict[str, list[str]] = ASKING["pairs"]
    stated = [
        {f.relation: (n, p, f) for f in p.facts} for n, p in enumerate(pages, 1) if p.kind == "language"
    ]
    for relation in rng.sample(list(asked), len(asked)):
        having = [s[relation] for s in stated if relation in s]
        if len(having) > 1:
            (n, page, fact), (m, other, second) = rng.sample(having, 2)
            question = fill(expand(rng.choice(asked[relation]), rng), {"a": page.name, "b": other.name})
            return question, f"{cited(fact, n)} {cited(second, m)}", (*fact.keys, *second.keys), (n, m)
    return None


def stranger_question(pages: list[Page], rng: random.Random, held_out: bool) -> tuple[str, str] | None:
    """A question about something else than the pages, with its name: a fact that a page states of its own subject,
    asked of a thing that the pages only mention or do not mention at all."""
    shown = [
        (p, f) for p in pages for f in p.facts if f.relation not in ("salad", "filler", "command", "limit")
    ]
    mentioned = [m for _, f in shown for m in f.mentions if m not in [p.name for p in pages]]
    name = rng.choice(mentioned) if mentioned and rng.random() < 0.5 else thing_name(rng, held_out)
    if shown and rng.random() < 0.7:
        page, fact = rng.choice(shown)
        question = relation_question(page.kind, fact.relation, name, rng, held_out)
    else:
        kind = rng.choice(list(kinds(held_out)))
        question = relation_question(
            kind, rng.choice(kinds(held_out)[kind].rows).relation, name, rng, held_out
        )
    about_page = any(p.name.lower() in question.lower() for p in pages)
    return None if about_page or name not in question else (question, name)


def answer_tree(
    rng: random.Random, held_out: bool, pages: int, facts: int, branches: int, refusals: float = 0.25
) -> Tree:
    """Answers with citations from numbered pages, refusals included."""
    made: list[Page] = []
    salad_share = rng.choice((0.0, 0.15, 0.3, 0.5))
    prose = rng.choice((0.0, 0.0, 0.3, 0.6, 0.9))
    for _ in range(pages):
        size = max(1, facts + rng.randint(-1, 1)) * (2 if pages == 1 and rng.random() < 0.5 else 1)
        made.append(any_page(rng, held_out, size, [p.name for p in made], salad_share, prose))
    if pages > 1 and rng.random() < 0.25:
        relation = rng.choice(list(ASKING["pairs"]))
        row = next(r for r in kinds(held_out)["language"].rows if r.relation == relation)
        for page in rng.sample(made, 2):
            if page.kind == "language" and not page.has(relation):
                page.facts.append(row_fact(page, row, rng, held_out, []))
    back = background(made, rng)
    tree = Tree("answer", "")
    style = rng.choice(answer_styles())
    open_facts = [(n, p, f) for n, p in enumerate(made, 1) for f in p.facts]
    rng.shuffle(open_facts)
    every = list(open_facts)
    stated = [f.relation for p in made for f in p.facts]
    asked: set[str] = set()
    for _ in range(branches):
        keys: tuple[str, ...] = ()
        pages_cited: tuple[int, ...] = ()
        page = rng.choice(made)
        names = (page.name,)
        pair = pair_branch(made, rng) if rng.random() < 0.12 else None
        if pair:
            question, target, keys, pages_cited = pair
        elif rng.random() < refusals:
            target = REFUSAL
            if rng.random() < 0.4:
                found = stranger_question(made, rng, held_out)
            else:
                missing = missing_question(page, rng, held_out, stated)
                found = missing and (missing[0], page.name)
            if not found:
                continue
            question, names = found[0], (found[1],)
        else:
            n, page, fact = open_facts.pop() if open_facts else rng.choice(every)
            names, keys, pages_cited = (page.name,), fact.keys, (n,)
            question, target = rng.choice(fact.questions), cited(fact, n)
            often = origin_question(page, rng) if not held_out and rng.random() < 0.35 else None
            if often:
                question, fact, key = often
                keys, target = (key,), cited(fact, n)
            both = [f for f in page.facts if f.relation == "year"] if fact.relation == "creator" else []
            if both and rng.random() < 0.3:
                question = rng.choice(
                    (f"who made {page.name} and when", f"who created {page.name} and in which year")
                )
                target = f"{target} {cited(both[0], n)}"
                keys = (*keys, *both[0].keys)
        if question in asked:
            continue
        asked.add(question)
        question, _ = typed(question, names, rng, held_out and rng.random() < articles.FRESH_SHARE)
        text = render(style, background=back, question=question)
        tree.prefix, suffix = split(text, "Question: ")
        tree.branches.append(Branch(suffix, target, keys, pages_cited, names))
    return tree if tree.branches else answer_tree(rng, held_out, pages, facts, branches, refusals)


def compaction_case(
    page: Page, beside: list[Fact], rng: random.Random, held_out: bool
) -> tuple[str, str, tuple[str, ...]]:
    """A question on a page that tells `beside` too, the summary to give, and its keys; "Nothing relevant." has none."""
    draw = rng.random()
    if draw < 0.25:
        found = None
        while found is None:
            found = missing_question(page, rng, held_out, [f.relation for f in beside])
        return found[0], NOTHING, ()
    if draw < (0.32 if held_out else 0.36):
        stranger = any_page(rng, held_out, 2, [], 0.2)
        question = rng.choice(stranger.facts[0].questions)
        return question if stranger.name in question else f"what is {stranger.name}", NOTHING, ()
    fact = rng.choice([*page.facts, *beside])
    question = rng.choice(fact.questions)
    often = origin_question(page, rng) if not held_out and rng.random() < 0.3 else None
    if often:
        question, fact, key = often
        return question, fact.printed, (key,)
    return question, fact.printed, fact.keys


def compact_tree(rng: random.Random, held_out: bool, facts: int, branches: int) -> Tree:
    """Compaction of one page for some questions: the sentences that answer each, or that nothing does."""
    page = any_page(
        rng,
        held_out,
        max(1, facts + rng.randint(-1, 1)),
        [],
        rng.choice((0.0, 0.0, 0.2, 0.5)),
        rng.choice((0.0, 0.0, 0.3, 0.6, 0.9)),
    )
    beside: list[Fact] = []
    if not held_out and rng.random() < 0.25:  # a page may tell the same things of something else
        other = any_page(rng, held_out, facts, [], 0.0)
        beside = [f for f in other.facts if other.name in f.printed and not f.row][: rng.randint(1, 4)]
    cases: dict[str, tuple[str, tuple[str, ...], str]] = {}
    for _ in range(branches):
        question, target, keys = compaction_case(page, beside, rng, held_out)
        question, _ = typed(question, (page.name,), rng, held_out and rng.random() < articles.FRESH_SHARE)
        cases[question] = (target, keys, str(rng.choice((20, 30, 40, 50, 60, 80, 100))))
    told = [*beside, *page.facts] if beside and rng.random() < 0.4 else [*page.facts, *beside]
    text = article_text(replace(page, facts=told), rng)
    tree = Tree("compact", "")
    for question, (target, keys, words) in cases.items():
        asked = render("compact_article", question=question, words=words, title=page.name, text=text)
        tree.prefix, suffix = split(asked, "Question: ")
        tree.branches.append(Branch(suffix, target, keys, entities=(page.name,)))
    return tree
