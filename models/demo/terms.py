"""Search terms: which words of a question to look for."""

from __future__ import annotations

import json
import random
import re

import articles
from articles import filler_fact, make_page, relation_question
from asking import either, typed
from carriers import composed, embedded, plain_topic, strewn, surrounded
from facts import TAUGHT, kinds
from grammar import fill
from names import hard_name, thing_name
from salad import vague
from trees import Branch, Tree, split
from words import ADJECTIVES, ADVERBS, LISTS, NOUNS, TECH_NOUNS, VERBS, plural

from prompts import render

MOST = 3  # terms, as the prompt allows
COMMON = frozenset(NOUNS + TECH_NOUNS + VERBS + ADVERBS + ADJECTIVES)
SMALL = LISTS["small"]
# Nouns that may belong to a name beside them; those that questions about facts use do not.
_ASKED = {w for k in TAUGHT.values() for r in k.rows for q in r.questions for w in re.findall(r"[a-z]+", q)}
LOOSE = frozenset({*NOUNS, *TECH_NOUNS, *map(plural, NOUNS), *map(plural, TECH_NOUNS)} - _ASKED)
_PLAIN = COMMON | LOOSE
_BEFORE, _AFTER = re.compile(r"(?<!\S)([^\W\d_]+) $"), re.compile(r" ([^\W\d_]+)(?![^\s?.!,])")
_BRACKETS = re.compile(r"(?<=\w) \([^()]*\)$")
_JOINED = re.compile(r", | & | / ")


def core(name: str) -> str:
    """A name without what stands in brackets after it, and without common words at its ends; the name itself where
    nothing would be left."""
    words = _BRACKETS.sub("", name).split()
    loose = [w.lower() in _PLAIN and (w == w.lower() or name.isupper()) for w in words]
    if all(loose):
        return name
    first, last = loose.index(False), len(loose) - loose[::-1].index(False)
    return " ".join(words[first:last])


def readings(name: str, question: str) -> list[str]:
    """What a search may take for the name as it stands in the question. Where common words make its ends doubtful, the
    longer and the shorter readings; of two joined by a sign, the whole and both parts."""
    parts = _JOINED.split(name)
    if len(parts) == 2 and all(len(p) > 1 for p in parts):
        return [name, *parts]
    inner = core(name)
    at = question.index(name) + name.index(inner)
    before, after = _BEFORE.search(question[:at]), _AFTER.match(question, at + len(inner))
    found = []
    if after and after[1].lower() in LOOSE:
        found.append(inner + after[0])
    same_case = inner.islower() or inner.isupper()
    if before and before[1].lower() in LOOSE and before[1].isupper() == inner.isupper() and same_case:
        found.append(before[1] + " " + inner)
    found.append(inner)
    return found if name in found else [name, *found]


def wanted(names: tuple[str, ...], question: str) -> list[str]:
    """The terms to answer: the names in their order in the question, then their other readings where there is room."""
    if len(names) == 1:
        return list(dict.fromkeys(readings(names[0], question)))[:MOST]
    names = tuple(sorted(names, key=question.index))
    joined = [f"{names[0]}{sign}{names[1]}" for sign in (", ", " & ", " / ")]
    whole = [text for text in joined if text in question]
    others = [reading for name in names for reading in readings(name, question)]
    return list(dict.fromkeys([*names, *whole, *map(core, names), *others]))[:MOST]


def scattered(name: str, rng: random.Random) -> str:
    """A name among common words in no order: what is not common is the name."""
    common = [
        rng.choice(rng.choice((NOUNS, TECH_NOUNS, VERBS, ADVERBS, ADJECTIVES, SMALL, SMALL)))
        for _ in range(rng.randint(1, 6))
    ]
    at = rng.randint(0, len(common))
    return " ".join([*common[:at], name, *common[at:]])


def with_noun(name: str, rng: random.Random) -> str:
    """Sometimes the name with a common word at an end, which is easily left out, or a name of common words alone."""
    draw = rng.random()
    if draw < 0.06:
        return f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"
    if draw > 0.36 or not name.isalpha():
        return name
    if draw < 0.26:
        return f"{name} {rng.choice(NOUNS)}"
    first = rng.choice(NOUNS if draw < 0.32 else ADJECTIVES)
    return f"{first.capitalize()} {name}" if name[0].isupper() else f"{first} {name}"


def carried(name: str, rng: random.Random) -> tuple[tuple[str, ...], str]:
    """A question from no template about the name, perhaps about one or two more; with its names."""
    more = rng.choices((0, 1, 2), (0.55, 0.4, 0.05))[0]
    others = (thing_name(rng) if rng.random() < 0.7 else hard_name(rng) for _ in range(more))
    names = (name, *(with_noun(other, rng) for other in others))
    draw = rng.random()
    if more == 2 or draw < 0.4:
        return names, strewn(names, rng)
    return names, composed(names, rng) if draw < 0.75 else embedded(names, rng, False)


def terms_tree(rng: random.Random, held_out: bool, branches: int) -> Tree:
    """Search terms: the names in the question, or its key phrase when it has none."""
    subject = "esoteric programming languages" if rng.random() < 0.5 else vague(rng)
    tree = Tree("terms", "")
    for _ in range(branches):
        fresh = held_out and rng.random() < articles.FRESH_SHARE
        page = make_page(rng, held_out, 2, [], 0.0)
        shape = rng.random()
        names: tuple[str, ...] = (page.name,)
        topic = False
        name = hard_name(rng, held_out) if not held_out and rng.random() < 0.45 else page.name
        if not held_out:
            name = with_noun(name, rng)
        if not held_out and rng.random() < 0.08:
            name, question = plain_topic(rng)
            names, topic = (name,), True
        elif not held_out and rng.random() < 0.55:
            names, question = carried(name, rng)
        elif shape < 0.05 and COMMON.isdisjoint(page.name.lower().split()):
            question = scattered(page.name, rng)
        elif shape < 0.12:
            question = rng.choice(filler_fact(page, rng, held_out).questions)
        elif shape < 0.45:
            kind = rng.choice(("language", page.kind, rng.choice(list(kinds(held_out)))))
            relation = rng.choice(kinds(held_out)[kind].rows).relation
            names = (name,)
            question = relation_question(kind, relation, name, rng, held_out)
        elif shape < 0.75:
            question = rng.choice(rng.choice(page.facts).questions)
        elif shape < 0.9:
            names = (name, thing_name(rng, held_out))
            pattern = either("comparisons", rng, fresh)
            question = fill(pattern, {"a": names[0], "b": names[1], "c": vague(rng).split()[-1]})
        else:
            names = (vague(rng),)
            topic = True
            question = fill(either("topics", rng, fresh), {"t": names[0]})
        if any(name not in question for name in names):
            continue
        if not held_out and rng.random() < 0.12:
            question = surrounded(question, rng)
        question, shown = typed(question, names, rng, fresh, 0.03 if held_out else 0.12)
        text = render("search_terms", subject=subject, question=question)
        tree.prefix, suffix = split(text, "Question: ")
        target = json.dumps(list(shown) if topic else wanted(shown, question), ensure_ascii=False)
        tree.branches.append(Branch(suffix, target, entities=shown))
    return tree if tree.branches else terms_tree(rng, held_out, branches)
