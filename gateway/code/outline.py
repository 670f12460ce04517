"""The outline of a project: its most important definitions, as many as fit into a number of tokens.

Importance is PageRank over calls, bases, imports and uses, personalised by the words of a question. S. Brin, L. Page,
"The anatomy of a large-scale hypertextual Web search engine", 1998.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import apsw
from msgspec import Struct

from gateway.code.languages.facts import shortened
from gateway.code.parts import is_test
from gateway.code.queries import search
from gateway.store.code import graph
from gateway.store.code.graph import Hit, Place

_DAMPING = 0.85
_ROUNDS = 20
# An upper estimate for code: models differ, and the outline must not exceed its budget with any of them.
_CHARACTERS_PER_TOKEN = 3.0
_FEWEST_TOKENS = 5  # of a definition
_WIDTH = 100  # characters of a signature
_ASKED = 3.0  # how much more what a question is about counts than the rest
HITS = 40  # of a search that count
_OF_TESTS = 0.05
_OF_MINOR = 0.2
_ASKED_TESTS = 0.2  # of what a search finds


class Outline(Struct, frozen=True, kw_only=True):
    """``tokens`` is an upper estimate; ``left_out`` definitions did not fit."""

    text: str
    tokens: int
    definitions: int
    left_out: int


def outline(
    connection: apsw.Connection, project: str, tokens: int, about: str = "", near: Sequence[Hit] = ()
) -> Outline:
    """The outline that fits, found by halving the number of definitions. ``near`` is what is ``about`` by meaning."""
    scores = graph.top_ranks(connection, project, tokens // _FEWEST_TOKENS)
    if about:
        for number, score in _asked_for(connection, project, about, near).items():
            scores[number] = scores.get(number, 0.0) + _ASKED * score
    found = [
        place
        for place in graph.places(connection, list(scores))
        if place.kind in ("class", "function", "method")
    ]
    found.sort(key=lambda place: (-scores[place.id], place.path, place.line))
    classes = graph.owners(connection, [place.id for place in found])
    known = {place.id: place for place in graph.places(connection, list(classes.values()))}
    owners = {method: known[owner] for method, owner in classes.items()}
    low, high = 0, min(len(found), tokens // _FEWEST_TOKENS)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(rendered(found[:middle], owners)) <= tokens:
            low = middle
        else:
            high = middle - 1
    text = rendered(found[:low], owners)
    every, _ = graph.unranked(connection, project)
    return Outline(text=text, tokens=estimate(text), definitions=low, left_out=every - low)


def _asked_for(
    connection: apsw.Connection, project: str, about: str, near: Sequence[Hit]
) -> dict[int, float]:
    """The definitions that a search finds, and, less so, what they use and what that uses."""
    hits = {
        (hit.path, hit.line): (_ASKED_TESTS if is_test(hit.path) else 1.0) / (10 + rank)
        for rank, hit in enumerate(search(connection, project, about, HITS, near))
    }
    level = {
        place.id: hits[place.path, place.line]
        for path, line in hits
        for place in graph.place_at(connection, project, path, line)
        if (place.path, place.line) in hits
    }
    scores = dict(level)
    for _ in range(2):
        following: defaultdict[int, float] = defaultdict(float)
        for caller, targets in _shares(graph.links_from(connection, level)).items():
            for target, share in targets:
                following[target] += _DAMPING * level[caller] * share
        for number, score in following.items():
            scores[number] = scores.get(number, 0.0) + score
        level = following
    total = sum(scores.values()) or 1.0
    return {number: score / total for number, score in scores.items()}


def _shares(links: list[graph.Link]) -> dict[int, list[tuple[int, float]]]:
    """How much of its importance each definition passes on to which."""
    targets: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for link in links:
        if link.caller != link.target:
            # Many calls by one caller say less than one call by many.
            targets[link.caller].append((link.target, link.weight**0.5))
    return {
        caller: [(target, weight / sum(each for _, each in out)) for target, weight in out]
        for caller, out in targets.items()
    }


def ranks(connection: apsw.Connection, project: str) -> list[tuple[int, float]]:
    """The importance of each definition, by what uses it. Tests, private names and inner functions have less."""
    kinds, start = dict[int, float](), dict[int, float]()
    for number, path, name, kind in graph.definition_paths(connection, project):
        start[number] = _OF_TESTS if is_test(path) else 1.0
        minor = kind == "inner" or name.startswith("_")
        kinds[number] = start[number] * (_OF_MINOR if minor else 1.0)
    total = sum(start.values()) or 1.0
    start = {number: weight / total for number, weight in start.items()}
    shares = _shares([link for link in graph.links(connection, project) if link.target in start])
    rank = start
    for _ in range(_ROUNDS):
        following = {number: (1 - _DAMPING) * weight for number, weight in start.items()}
        loose = 0.0
        for number, value in rank.items():
            if number not in shares:
                loose += value
                continue
            for target, share in shares[number]:
                following[target] += _DAMPING * value * share
        rank = {number: value + _DAMPING * loose * start[number] for number, value in following.items()}
    return [(number, value * kinds[number]) for number, value in rank.items()]


def estimate(text: str) -> int:
    return round(len(text.encode()) / _CHARACTERS_PER_TOKEN + 0.5)


def rendered(chosen: list[Place], owners: Mapping[int, Place]) -> str:
    """The definitions by file and line, methods below their class; the most important file first."""
    by_file: dict[str, dict[int, str]] = {}
    for place in chosen:
        lines = by_file.setdefault(place.path, {})
        owner = owners.get(place.id)
        if owner is not None:
            lines.setdefault(owner.line, f"  {owner.line}: {owner.signature}")
        lines[place.line] = f"{'  ' * (2 if owner else 1)}{place.line}: {shortened(place.signature, _WIDTH)}"
    return "\n".join(
        "\n".join([f"{path}:", *(text for _, text in sorted(lines.items()))])
        for path, lines in by_file.items()
    )
