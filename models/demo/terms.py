"""Search terms: which words of a question to look for."""

from __future__ import annotations

import json
import random

import articles
from articles import filler_fact, make_page, relation_question
from asking import either, typed
from facts import KINDS
from grammar import fill
from names import thing_name
from salad import vague
from trees import Branch, Tree, split
from words import ADJECTIVES, ADVERBS, LISTS, NOUNS, TECH_NOUNS, VERBS

from prompts import render

COMMON = frozenset(NOUNS + TECH_NOUNS + VERBS + ADVERBS + ADJECTIVES)
SMALL = LISTS["small"]


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
        fresh = held_out and rng.random() < articles.FRESH_SHARE
        page = make_page(rng, held_out, 2, [], 0.0)
        shape = rng.random()
        names: tuple[str, ...] = (page.name,)
        if shape < 0.05 and COMMON.isdisjoint(page.name.lower().split()):
            question = scattered(page.name, rng)
        elif shape < 0.12:
            question = rng.choice(filler_fact(page, rng, held_out).questions)
        elif shape < 0.45:
            kind = rng.choice(("language", page.kind, rng.choice(list(KINDS))))
            relation = rng.choice(KINDS[kind].rows).relation
            question = relation_question(kind, relation, page.name, rng, held_out)
        elif shape < 0.75:
            question = rng.choice(rng.choice(page.facts).questions)
        elif shape < 0.9:
            names = (page.name, thing_name(rng, held_out))
            pattern = either("comparisons", rng, fresh)
            question = fill(pattern, {"a": names[0], "b": names[1], "c": vague(rng).split()[-1]})
        else:
            names = (vague(rng),)
            question = fill(either("topics", rng, fresh), {"t": names[0]})
        if any(name not in question for name in names):
            continue
        question, shown = typed(question, names, rng, fresh)
        text = render("search_terms", subject=subject, question=question)
        tree.prefix, suffix = split(text, "Question: ")
        target = json.dumps(list(shown), ensure_ascii=False)
        tree.branches.append(Branch(suffix, target, entities=shown))
    return tree if tree.branches else terms_tree(rng, held_out, branches)
