"""Resolve the sites of a project's files: each to its targets, to something outside of the project, or to nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.code.languages.facts import CodeSite, Expr, Import
from gateway.code.resolving.calls import pairs
from gateway.code.resolving.resolver import Resolver
from gateway.code.resolving.values import COMMON, CONFIDENCE, Value, Values
from gateway.code.resolving.view import Modules, View
from gateway.store.code import files as store
from gateway.store.code.files import Argument, FileRow, NewSite
from gateway.store.db import Database

_MOST_ARGUMENTS = 6  # of one site: more values say too little
_MOST_TARGETS = 8
_MOST_IMPORTS = 6  # that hand a variable on

_CALL_THEIR_ARGUMENTS = {f"<builtin>.{name}" for name in ("map", "filter", "sorted", "min", "max")}

Ids = Mapping[tuple[int, int], int]  # of definitions, by file and ordinal


class Names(NamedTuple):
    """The files and definitions of a project. ``ids`` are by file and ordinal, ``places`` the other way.

    ``namesakes`` are functions and methods by name.
    """

    rows: list[FileRow]
    namesakes: dict[str, list[tuple[int, int]]]
    ids: dict[tuple[int, int], int]
    places: dict[int, tuple[int, int]]

    def only(self, name: str) -> tuple[int, int] | None:
        """The one definition of that name, unless objects of every kind have something of that name."""
        found = self.namesakes.get(name, ())
        return found[0] if len(found) == 1 and name not in COMMON and not name.startswith("__") else None


def resolve_file(resolver: Resolver, view: View, names: Names) -> tuple[list[NewSite], set[Argument]]:
    """The sites of a file with their edges, and what its calls pass to parameters."""
    ids = names.ids
    sites: list[NewSite] = []
    arguments: set[Argument] = set()
    for site in view.sites():
        resolver.begin()
        values = resolver.evaluate(view, site.scope, site.callee, site.line)
        if len(values) > _MOST_TARGETS:
            values = {}
        edges = _edges(resolver, site, values, ids)
        if site.kind == "call" and any(value.text in _CALL_THEIR_ARGUMENTS for value in values):
            edges |= _called_back(resolver, view, site, ids)
        if site.kind == "call":
            arguments |= _arguments(resolver, view, site, values, ids)
        outside = next((value.text for value in values if value.kind == "external"), None)
        if site.kind == "import" and site.callee is not None:
            new = view.imports[site.callee[1]]
            home = resolver.file_of(view, new)
            found = _exported(resolver, home, new.name) if home is not None and new.name else None
            if home is not None and (found or not edges):
                edges[ids[found or (home, 0)]] = "import"
        if not edges and outside is None and site.kind == "call" and site.receiver:
            resolver.lookups.add(site.name)
            only = names.only(site.name)
            if only is not None and only in ids:
                edges = {ids[only]: "unique name"}
            elif site.receiver in ("self", "this"):
                edges = _below(resolver, view, site, names)
        named = _variable(resolver, view, site) if site.kind in ("call", "use") else None
        used = {ids[named]: "same file" if named[0] == view.id else "import"} if named in ids else {}
        if site.kind == "use":
            edges |= used
        elif used:
            sites.append(_new(site, "use", used, None))
        if edges or site.kind not in ("use", "implicit"):  # else a value that is no definition
            sites.append(_new(site, site.kind, edges, outside if not edges else None))
    return sites, arguments


def _new(site: CodeSite, kind: str, edges: dict[int, str], external: str | None) -> NewSite:
    return NewSite(
        scope=site.scope,
        kind=kind,
        name=site.name,
        receiver=site.receiver,
        line=site.line,
        column=site.column,
        external=external,
        edges=[(target, origin, CONFIDENCE[origin]) for target, origin in edges.items()],
    )


def _variable(resolver: Resolver, view: View, site: CodeSite) -> tuple[int, int] | None:
    """The variable at the top of a file that an expression names: `NAME`, or `module.NAME`."""
    expr: Expr = site.callee
    if expr is None or expr[0] not in "na" or (expr[0] == "a" and (expr[1] or "?")[0] != "n"):
        return None
    name = expr[1] if expr[0] == "n" else expr[1][1]
    home = view.home(site.scope, name)
    if home == 0 and name in view.variables:
        return (view.id, view.variables[name]) if expr[0] == "n" else None
    for each in view.candidates(home, name) if home >= 0 else ():
        if isinstance(each.what, Import) and (expr[0] == "a") == (not each.what.name):
            file = resolver.file_of(view, each.what)
            if file is not None:
                return _exported(resolver, file, each.what.name or expr[2])
    return None


def _exported(resolver: Resolver, file: int, name: str, depth: int = 0) -> tuple[int, int] | None:
    """The variable that a module has under a name, also one that it imports."""
    view = resolver.modules.view(file)
    resolver.lookups.add(name)
    if name in view.variables or depth > _MOST_IMPORTS:
        return (file, view.variables[name]) if name in view.variables else None
    named = [each.what for each in view.candidates(0, name) if isinstance(each.what, Import)]
    for each in named or view.stars:
        further = resolver.file_of(view, each) if each.name else None
        if further is not None:
            wanted = name if each.name == "*" else each.name
            if found := _exported(resolver, further, wanted, depth + 1):
                return found
    return None


def _edges(resolver: Resolver, site: CodeSite, values: Values, ids: Ids) -> dict[int, str]:
    edges: dict[int, str] = {}
    several = len([value for value in values if value.kind not in ("external", "box")]) > 1
    for value, origin in values.items():
        for target, found in _targets(resolver, site, value, origin):
            number = ids.get((target.file, target.at))
            if number is not None:
                weak = several and CONFIDENCE[found] > CONFIDENCE["flow"]
                edges[number] = "flow" if weak else found
    return edges


def _called_back(resolver: Resolver, view: View, site: CodeSite, ids: Ids) -> dict[int, str]:
    """The functions that a call of something foreign, such as `sorted`, calls in turn."""
    return {
        ids[each.file, each.at]: "flow"
        for expr in [*site.args, *site.keywords.values()]
        for value in resolver.evaluate(view, site.scope, expr, site.line)
        for each in resolver.callees(value)
        if (each.file, each.at) in ids
    }


def _below(resolver: Resolver, view: View, site: CodeSite, names: Names) -> dict[int, str]:
    """Methods that only subclasses of the class around a site have."""
    owner = view.enclosing_class(site.scope)
    places = names.namesakes.get(site.name, ())
    if owner is None or len(places) > _MOST_TARGETS:
        return {}
    base = Value("definition", view.id, owner)
    return {
        names.ids[file, index]: "flow"
        for file, index in places
        if base
        in resolver.order(Value("definition", file, resolver.modules.view(file).definitions[index].parent))
    }


def _targets(resolver: Resolver, site: CodeSite, value: Value, origin: str) -> list[tuple[Value, str]]:
    if value.kind == "super" and site.kind == "call":  # super(…) in JavaScript
        return [(each, origin) for each in resolver.constructor(value)]
    if value.kind not in ("definition", "bound", "instance"):
        return []
    if site.kind not in ("call", "implicit"):
        return [(value, origin)] if value.kind != "instance" else []
    if value.kind == "instance":
        return [(each, origin) for each in resolver.attribute(value, "__call__") if each.kind == "bound"]
    if value.kind == "definition" and resolver.definition(value).kind == "class":
        made = [(each, origin) for each in resolver.constructor(value)]
        return [(value, origin), *made]
    return [(value, origin)]


def _arguments(resolver: Resolver, view: View, site: CodeSite, values: Values, ids: Ids) -> set[Argument]:
    found: set[Argument] = set()
    if not site.args and not site.keywords:
        return found
    for value in values:
        for callee in resolver.callees(value):
            definition = resolver.definition(callee)
            roots = resolver.modules.view(callee.file).roots
            for param, expr in pairs(definition, callee, site):
                if param.name not in roots:
                    continue  # the function does nothing with it that matters here
                passed = [
                    each
                    for each in resolver.evaluate(view, site.scope, expr, site.line)
                    if each.kind in ("definition", "bound", "instance")
                ]
                if len(passed) <= _MOST_ARGUMENTS:
                    found |= {
                        Argument(ids[callee.file, callee.at], param.name, ids[each.file, each.at], each.kind)
                        for each in passed
                        if (each.file, each.at) in ids and (callee.file, callee.at) in ids
                    }
    return found


_MOST_VALUES = 12  # of a parameter

Passed = Mapping[int, set[Argument]]  # by file: what it passes to parameters
_PASSED = msgspec.msgpack.Decoder(dict[int, set[Argument]])


class Resolved(NamedTuple):
    """Result of resolving a file."""

    row: FileRow
    sites: list[NewSite]
    lookups: set[str]
    arguments: set[Argument]


class ResolveBatch(NamedTuple):
    """Files to resolve in one round, with the arguments ``passed`` in the round before; encoded for other processes."""

    turn: int
    files: Sequence[int]
    passed: Passed | bytes


class FileResolver:
    """Resolves files of one project. ``cached`` files stay in memory."""

    def __init__(self, database: Database, names: Names, cached: int) -> None:
        def facts(digest: bytes) -> bytes | None:
            return database.read_sync(lambda c: store.facts_of(c, digest))

        self._names, self._modules = names, Modules(names.rows, facts, cached)
        self._turn = -1
        self._resolver = Resolver(self._modules, {})

    def __call__(self, batch: ResolveBatch) -> list[Resolved]:
        if batch.turn != self._turn:
            passed = _PASSED.decode(batch.passed) if isinstance(batch.passed, bytes) else batch.passed
            self._turn = batch.turn
            self._resolver = Resolver(self._modules, incoming(passed.values(), self._names.places))
        return [self._resolve(file) for file in batch.files if file in self._modules.rows]

    def _resolve(self, file: int) -> Resolved:
        self._resolver.begin_file()
        view = self._modules.view(file)
        sites, arguments = resolve_file(self._resolver, view, self._names)
        return Resolved(self._modules.rows[file], sites, self._resolver.lookups, arguments)


def read_names(database: Database, project: str) -> Names:
    rows = database.read_sync(lambda c: store.files_of(c, project))
    namesakes, ids = dict[str, list[tuple[int, int]]](), dict[tuple[int, int], int]()
    for file, ordinal, number, name in database.read_sync(lambda c: store.definition_names(c, project)):
        ids[file, ordinal] = number
        if name:
            namesakes.setdefault(name, []).append((file, ordinal))
    return Names(rows, namesakes, ids, {number: place for place, number in ids.items()})


def resolve_batches(
    number: int, files: Sequence[int], passed: Passed, *, size: int, elsewhere: bool
) -> Iterator[ResolveBatch]:
    """The files in batches of ``size``, for this process or for others."""
    given = msgspec.msgpack.encode(passed) if elsewhere else dict(passed)
    return (ResolveBatch(number, files[start : start + size], given) for start in range(0, len(files), size))


def incoming(
    passed: Iterable[set[Argument]], places: dict[int, tuple[int, int]]
) -> dict[tuple[int, int], dict[str, set[Value]]]:
    """Arguments by parameter of each definition. One that takes anything says too little for its time."""
    found: defaultdict[tuple[int, int], dict[str, set[Value]]] = defaultdict(dict)
    for arguments in passed:
        for each in arguments:
            if each.callee in places and each.value in places:
                value = Value(each.kind, *places[each.value])  # type: ignore[arg-type]
                found[places[each.callee]].setdefault(each.name, set()).add(value)
    return {
        callee: {name: values for name, values in names.items() if len(values) <= _MOST_VALUES}
        for callee, names in found.items()
    }
