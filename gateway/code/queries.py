"""Questions about a project: who calls, what is called, what a change concerns. Answers say how sure they are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TypeVar

import apsw
from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.base.ranking import K_SEARCH, fuse
from gateway.code.parts import is_test, spelled
from gateway.code.resolving.values import CONFIRMED
from gateway.store import fts
from gateway.store.code import files, graph
from gateway.store.code.graph import CodeUse, Hit, Place

VALUES = ("variable", "type")  # kinds of what a file has at its top beside classes and functions
LIMIT = 500  # rows of a group
_COMPARED = 50  # hits at least, so that there are others to put before tests
_TEST_PLACES = 10  # that a test loses in a ranking
_NAMED = 100  # definitions of one name that a search looks at
_SHORT = 2  # characters of a word that says nothing
_PLACE = re.compile(r"(.+?):(\d{1,9})")


class Callers(Struct, frozen=True, kw_only=True):
    """Users of the definitions ``of`` a name; without one, it is that of something outside of the project.

    ``confirmed`` uses are facts of the text; ``possible`` ones depend on what flows through parameters and containers,
    or on a unique name, or may reach an overriding method; ``unresolved`` ones have that name, and nothing is known of
    their receivers. ``cut`` names groups of which only the first rows are shown.
    """

    of: list[Place]
    confirmed: list[CodeUse]
    possible: list[CodeUse]
    unresolved: list[CodeUse]
    cut: list[str]


class Callees(Struct, frozen=True, kw_only=True):
    of: list[Place]
    confirmed: list[CodeUse]
    possible: list[CodeUse]
    external: list[CodeUse]  # of other packages
    unresolved: list[CodeUse]
    cut: list[str]


class Imports(Struct, frozen=True, kw_only=True):
    of: list[Place]
    imports: list[CodeUse]
    imported_by: list[CodeUse]
    cut: list[str]


Grouped = TypeVar("Grouped", Callers, Callees, Imports)


class Route(Struct, frozen=True, kw_only=True):
    """A shortest chain of calls; empty when there is none."""

    path: list[Place]


class Reached(Struct, frozen=True, kw_only=True):
    """A definition that a change may concern, ``distance`` calls away."""

    distance: int
    place: Place


class Impact(Struct, frozen=True, kw_only=True):
    """Dependents of a definition, nearest first. ``unresolved`` calls of its name may depend on it as well."""

    of: list[Place]
    reached: list[Reached]
    files: list[str]
    unresolved: list[CodeUse]
    cut: list[str]


def find(connection: apsw.Connection, project: str, name: str) -> list[Place]:
    """The definitions that a name means: a qualified name, the end of one, a path or its end, or ``path:line``.

    The name of a class with what it inherits means the base's definition.

    Raises NotFoundError.
    """
    match = _PLACE.fullmatch(name)
    found = [] if match else graph.places_named(connection, project, name)
    if found := found or _exported(connection, project, name) or _inherited(connection, project, name):
        return found
    paths = files.paths_named(connection, project, match[1] if match else name)
    known = [place for path in paths for place in graph.module_at(connection, project, path)]
    if found := (
        [place for path in paths for place in graph.place_at(connection, project, path, int(match[2]))]
        if match
        else known
    ):
        return found
    if match:
        lines = (
            f"{match[1]} has {known[0].end_line} lines"
            if known
            else f"no indexed file is called `{match[1]}`"
        )
        raise NotFoundError(f"{lines}; `hearth context search` finds words")
    alike = " or ".join(f"`{each}`" for each in _alike(connection, project, name))
    remedy = f"did you mean {alike}?" if alike else "`hearth context search` finds words"
    raise NotFoundError(f"nothing in this project is called `{name}`; {remedy}")


def _exported(connection: apsw.Connection, project: str, name: str) -> list[Place]:
    """The definitions that a package hands on under another name, as `package.Class` or `package.Class.method`."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        for target in files.exported(connection, project, ".".join(parts[:cut]), parts[cut]):
            wanted = ".".join([target, *parts[cut + 1 :]])
            if found := graph.places_named(connection, project, wanted):
                return found
    return []


def _inherited(connection: apsw.Connection, project: str, name: str) -> list[Place]:
    """Members that a class inherits, as `Class.method`."""
    owner, _, last = name.rpartition(".")
    named = graph.places_named(connection, project, owner) or _exported(connection, project, owner)
    classes = [place.id for place in named if place.kind == "class"]
    return graph.places(connection, graph.inherited(connection, classes, last)) if classes else []


def _alike(connection: apsw.Connection, project: str, name: str) -> list[str]:
    """Names that exist and may be meant: the last name elsewhere, or one that is spelled almost so."""
    owner, _, last = name.rpartition(".")
    named = [each.name for each in graph.places_named(connection, project, last)] if owner else []
    if named:
        found = [".".join(each.split(".")[-2:]) for each in named]
        owner = owner.rpartition(".")[2].lower()
        return sorted(dict.fromkeys(found), key=lambda each: owner not in each.lower())[:3]
    spelled_so = files.names_like(connection, project, last)
    same = [each for each in spelled_so if each.lower() == last.lower()]
    return same[:3] or difflib.get_close_matches(last, spelled_so, 3, 0.75)


def callers(connection: apsw.Connection, project: str, name: str) -> Callers:
    """Callers of a definition: confirmed, possible, and calls that could not be resolved."""
    return _uses(connection, project, name, graph.CALLS)


def references(connection: apsw.Connection, project: str, name: str) -> Callers:
    """Every use of a definition: calls, imports, bases, and places that hand it on."""
    return _uses(connection, project, name, graph.ALL_KINDS)


def _uses(connection: apsw.Connection, project: str, name: str, kinds: tuple[str, ...]) -> Callers:
    found, outside = _find_or_outside(connection, project, name, kinds)
    if not found:
        return _grouped(Callers, found, confirmed=outside, possible=[], unresolved=[])
    if all(place.kind in VALUES for place in found):
        kinds = graph.ALL_KINDS  # what is called is what they hold
    ids = [place.id for place in found]
    uses = graph.uses_of(connection, ids, kinds, 2 * LIMIT + 1)
    above = {
        base for place in found if place.kind == "method" for base in graph.overridden(connection, place.id)
    }
    inherited = [
        use for use in graph.uses_of(connection, sorted(above), kinds, LIMIT + 1) if use.target_id not in ids
    ]
    confirmed = [use for use in uses if (use.confidence or 0) >= CONFIRMED]
    possible = [use for use in uses if (use.confidence or 0) < CONFIRMED] + inherited
    loose = _loose(connection, project, found)
    return _grouped(Callers, found, confirmed=confirmed, possible=possible, unresolved=loose)


def _find_or_outside(
    connection: apsw.Connection, project: str, name: str, kinds: tuple[str, ...]
) -> tuple[list[Place], list[CodeUse]]:
    """What a name means in the project, else the uses of what it means outside. Raises NotFoundError."""
    try:
        return find(connection, project, name), []
    except NotFoundError:
        if outside := graph.uses_outside(connection, project, name, kinds, LIMIT + 1):
            return [], outside
        raise


def _grouped(kind: type[Grouped], found: list[Place], **groups: list[CodeUse]) -> Grouped:
    """The groups as far as they are shown."""
    cut = [name for name, rows in groups.items() if len(rows) > LIMIT]
    return kind(of=found, **{name: rows[:LIMIT] for name, rows in groups.items()}, cut=cut)


def _loose(connection: apsw.Connection, project: str, found: list[Place]) -> list[CodeUse]:
    methods = all(place.kind == "method" for place in found)
    name = found[0].name.rpartition(".")[2]
    return graph.unresolved(connection, project, name, LIMIT + 1, of_objects=methods)


def callees(connection: apsw.Connection, project: str, name: str) -> Callees:
    """The calls within a definition."""
    found = find(connection, project, name)
    scopes = sorted(
        {each for place in found if place.kind != "module" for each in graph.inner(connection, place.id)}
    )
    uses = graph.uses_in(connection, scopes or [place.id for place in found], graph.CALLS, 4 * LIMIT)
    groups: dict[str, list[CodeUse]] = {
        name: [] for name in ("confirmed", "possible", "external", "unresolved")
    }
    for use in uses:
        if use.target_id is not None:
            groups["confirmed" if (use.confidence or 0) >= CONFIRMED else "possible"].append(use)
        else:
            groups["external" if use.external is not None else "unresolved"].append(use)
    return _grouped(Callees, found, **groups)


def subclasses(connection: apsw.Connection, project: str, name: str) -> list[Place]:
    """All classes below one, nearest first; also below one of another package."""
    found, outside = _find_or_outside(connection, project, name, ("base",))
    ids = [each for place in found for each in graph.subclasses(connection, place.id)]
    if outside:
        ids = graph.classes_at(connection, outside[:LIMIT])
        ids += [each for known in ids for each in graph.subclasses(connection, known)]
    by_id = {place.id: place for place in graph.places(connection, ids)}
    return [by_id[each] for each in dict.fromkeys(ids)]


def imports(connection: apsw.Connection, project: str, name: str) -> Imports:
    """Imports of a module, and the modules that import it; ``name`` is a module or a path, or something in it."""
    found, outside = _find_or_outside(connection, project, name, ("import",))
    if not found:
        return _grouped(Imports, found, imports=[], imported_by=outside)
    modules = [place.id for place in found if place.kind == "module"] or [
        module.id for place in found for module in graph.module_at(connection, project, place.path)
    ]
    out = graph.uses_in(connection, modules, ("import",), LIMIT + 1)
    inside = [each for place in found for each in graph.inner(connection, place.id)]
    into = graph.uses_of(connection, inside, ("import",), LIMIT + 1)
    return _grouped(Imports, found, imports=out, imported_by=into)


def route(connection: apsw.Connection, project: str, start: str, end: str) -> Route:
    """A shortest chain of calls from one definition to another, confirmed or possible ones."""
    ends = {place.id for place in find(connection, project, end)}
    level = {each for place in find(connection, project, start) for each in graph.inner(connection, place.id)}
    came = dict.fromkeys(level, 0)
    while level and not level & ends:
        following = set()
        for caller, target in graph.neighbours(connection, sorted(level), backwards=False):
            if target not in came:
                came[target] = caller
                following.add(target)
        level = following
    if not level:
        return Route(path=[])
    chain = [min(level & ends)]
    while came[chain[-1]]:
        chain.append(came[chain[-1]])
    by_id = {place.id: place for place in graph.places(connection, chain)}
    return Route(path=[by_id[each] for each in reversed(chain)])


def impact(connection: apsw.Connection, project: str, name: str, depth: int = 3) -> Impact:
    """Definitions that call a definition, or inherit from it, directly and over others."""
    found = find(connection, project, name)
    start = {each for place in found for each in graph.inner(connection, place.id)}
    seen, level, distances = set(start), start, dict[int, int]()
    for distance in range(1, depth + 1):
        level = {caller for caller, _ in graph.neighbours(connection, sorted(level), backwards=True)} - seen
        seen |= level
        distances |= dict.fromkeys(level, distance)
    reached = [
        Reached(distance=distances[each.id], place=each) for each in graph.places(connection, list(distances))
    ]
    reached.sort(key=lambda each: each.distance)
    loose = _loose(connection, project, found)
    return Impact(
        of=found,
        reached=reached[:LIMIT],
        files=sorted({each.place.path for each in reached}),
        unresolved=loose[:LIMIT],
        cut=[name for name, rows in (("reached", reached), ("unresolved", loose)) if len(rows) > LIMIT],
    )


def search(
    connection: apsw.Connection, project: str, query: str, limit: int, near: Sequence[Hit] = ()
) -> list[Hit]:
    """Parts by their words, definitions by their names, and what is ``near`` by meaning, fused."""
    worded, by_name = by_words(connection, project, query, limit), named(connection, project, query)[:limit]
    return merged([worded, by_name, near])[:limit]


def merged(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Reciprocal rank fusion."""
    found = {(hit.path, hit.line): hit for ranking in reversed(rankings) for hit in ranking}
    keys = [[(hit.path, hit.line) for hit in ranking] for ranking in rankings]
    return [found[key] for key, _ in fuse(keys, K_SEARCH)]


def by_words(connection: apsw.Connection, project: str, query: str, limit: int) -> list[Hit]:
    """Parts that hold words of the query, best first; tests only before what is far worse."""
    found = graph.found_by_text(connection, project, fts.words(spelled(query)), max(2 * limit, _COMPARED))
    ranked = sorted(enumerate(found), key=lambda each: each[0] + _TEST_PLACES * is_test(each[1].path))
    return [hit for _, hit in ranked][:limit]


def named(connection: apsw.Connection, project: str, query: str) -> list[Hit]:
    """Definitions whose names are words of the query, those first whose full names hold most of them.

    An ordinary word among others means a name only if another word stands in the full name.
    """
    words = list(dict.fromkeys(re.findall(r"[\w.$]*[\w$]", query)))
    found = []
    for word in words:
        others = {each.lower() for each in words if each != word and len(each) > _SHORT}
        alone = len(words) == 1 or not word.isalpha() or not word[1:].islower()
        for place in graph.places_named(connection, project, word, most=_NAMED):
            shared = len(others & set(re.findall(r"[^\W_]+", spelled(place.name).lower())))
            if place.kind not in ("module", "lambda") and (alone or shared):
                found.append((shared, place))
    found.sort(key=lambda each: -each[0])
    return [Hit(path=place.path, line=place.line, end_line=place.end_line, kind="code") for _, place in found]
