"""Resolving the files of a project, with what the index has stored of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.code.resolving.files import Names, resolve_file
from gateway.code.resolving.resolver import Resolver
from gateway.code.resolving.values import Value
from gateway.code.resolving.view import Modules
from gateway.store.code import files as store
from gateway.store.db import Database

_MOST_VALUES = 12  # of a parameter

Passed = Mapping[int, set[store.Argument]]  # by file: what it passes to parameters
_PASSED = msgspec.msgpack.Decoder(dict[int, set[store.Argument]])


class Resolved(NamedTuple):
    """Result of resolving a file."""

    row: store.FileRow
    sites: list[store.NewSite]
    lookups: set[str]
    arguments: set[store.Argument]


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
    passed: Iterable[set[store.Argument]], places: dict[int, tuple[int, int]]
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
