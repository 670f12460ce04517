"""The outline of a project: its most important definitions, as many as fit into a number of tokens.

Importance is PageRank over calls, bases, imports and uses, personalised by the words of a question. S. Brin, L. Page,
"The anatomy of a large-scale hypertextual Web search engine", 1998.
"""

from __future__ import annotations

import re
from collections import defaultdict

import apsw
from msgspec import Struct

from gateway.code.queries import search
from gateway.store.code import graph
from gateway.store.code.graph import Place

_DAMPING = 0.85
_ROUNDS = 20
# An upper estimate for code: models differ, and the outline must not exceed its budget with any of them.
_CHARACTERS_PER_TOKEN = 3.0
_TESTS = re.compile(
    r"(^|/)(tests?|testing|__tests__|spec|benchmarks?|docs|examples?)(/|$)|(^|/)(test_|conftest)|\.(test|spec)\."
)


class Outline(Struct, frozen=True, kw_only=True):
    """``tokens`` is an upper estimate; ``left_out`` definitions did not fit."""

    text: str
    tokens: int
    definitions: int
    left_out: int


def is_test(path: str) -> bool:
    """Whether a file only shows or checks how others are used."""
    return _TESTS.search(path) is not None


def outline(connection: apsw.Connection, project: str, tokens: int, about: str = "") -> Outline:
    """The outline that fits, found by halving the number of definitions."""
    places = {place.id: place for place in graph.all_places(connection, project)}
    hits = {(hit.path, hit.line) for hit in search(connection, project, about, 40)} if about else set()
    ranks = ranked(places, graph.links(connection, project), hits)
    low, high = 0, min(len(ranks), tokens)  # a definition has more than one token
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(rendered(ranks[:middle])) <= tokens:
            low = middle
        else:
            high = middle - 1
    text = rendered(ranks[:low])
    return Outline(text=text, tokens=estimate(text), definitions=low, left_out=len(ranks) - low)


def estimate(text: str) -> int:
    return round(len(text.encode()) / _CHARACTERS_PER_TOKEN + 0.5)


def ranked(places: dict[int, Place], links: list[graph.Link], hits: set[tuple[str, int]]) -> list[Place]:
    """Functions and classes, the most important first."""
    start: dict[int, float] = {}
    for place in places.values():
        weight = 0.05 if is_test(place.path) else 1.0
        start[place.id] = weight + (
            200.0 if (place.path, place.line) in hits and place.kind != "module" else 0.0
        )
    total = sum(start.values()) or 1.0
    start = {number: weight / total for number, weight in start.items()}
    targets: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for link in links:
        if link.caller in places and link.target in places and link.caller != link.target:
            # Many calls by one caller say less than one call by many.
            targets[link.caller].append((link.target, link.weight**0.5))
    sums = {caller: sum(weight for _, weight in out) for caller, out in targets.items()}
    rank = start
    for _ in range(_ROUNDS):
        following = {number: (1 - _DAMPING) * weight for number, weight in start.items()}
        loose = 0.0
        for number, value in rank.items():
            if number not in sums:
                loose += value
                continue
            for target, weight in targets[number]:
                following[target] += _DAMPING * value * weight / sums[number]
        rank = {number: value + _DAMPING * loose * start[number] for number, value in following.items()}
    shown = [place for place in places.values() if place.kind not in ("module", "lambda")]
    return sorted(
        shown,
        key=lambda place: (
            -rank[place.id] * (0.05 if is_test(place.path) else 1.0),
            place.path,
            place.line,
        ),
    )


def rendered(chosen: list[Place]) -> str:
    """The definitions by file and line; files in the order of their first definition's importance."""
    by_file: dict[str, list[Place]] = {}
    for place in chosen:
        by_file.setdefault(place.path, []).append(place)
    blocks = []
    for path, found in by_file.items():
        found.sort(key=lambda place: place.line)
        lines = [f"{'  ' * (1 + (place.kind == 'method'))}{place.line}: {place.signature}" for place in found]
        blocks.append("\n".join([f"{path}:", *lines]))
    return "\n".join(blocks)
