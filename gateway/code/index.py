"""Index a project: find its files, parse those whose content is new, resolve what the changes concern.

Two servers, or a server and a command, may index the same project: each compares hashes with the database and writes
only what differs. Every transaction is short.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw

from gateway.base.errors import HearthError
from gateway.code.languages.facts import DECODER, VERSION, Expr, FileFacts, last_part
from gateway.code.outline import ranks
from gateway.code.processes import in_processes, processes_for
from gateway.code.reading import NO_FACTS, FileRead, FileReader, Unread, module_of
from gateway.code.resolving.project import FileResolver, Resolved, read_names, resolve_batches
from gateway.code.walk import FoundFile, Walk, check_root, files_at, walk
from gateway.store.code import files as store
from gateway.store.code import graph, projects
from gateway.store.db import Database
from gateway.store.fts import merge_step

_AT_ONCE = 40  # files of a transaction
_CACHED_FILES = 900  # in memory while resolving, of all processes
_ROUNDS = 5  # of following arguments to parameters; the later ones only for
_MANY = 40  # files at most
_MERGED_FROM = 200  # changed files; after fewer, the watcher merges the text index when it is quiet
_UNRANKED = 0.02  # share of new definitions from which on all are ranked again

Progress = Callable[[str, int, int], None]  # what is being done, how many of how many


class Indexed(NamedTuple):
    """Counts of one indexing run."""

    parsed: int
    resolved: int
    removed: int
    walk: Walk


class _Compared(NamedTuple):
    """The files of a project beside what the index knows of them; ``stale`` ones are to be read."""

    walk: Walk
    known: dict[str, store.FileRow]
    packages: set[str]
    stale: list[FoundFile]


class ProjectIndexer:
    """Brings one project up to date."""

    def __init__(
        self, database: Database, project: projects.CodeProject, progress: Progress | None = None
    ) -> None:
        self._database, self._project = database, project
        self._progress = progress or (lambda stage, done, total: None)
        self._root = Path(project.path)

    def run(self) -> Indexed:
        """Index what has changed since the last time.

        Raises HearthError when the folder is gone or unreadable, also from one moment to the next. The index stays.
        """
        try:
            return self._run(self._compare())
        except HearthError as error:
            problem = error.message
            if self._project.problem != problem:
                self._database.write_sync(lambda c: projects.set_problem(c, self._project.id, problem))
            raise

    def run_for(self, paths: Collection[str]) -> None:
        """Index these relative paths first, without a walk over the project, if they all are files that it knows.

        What else has changed is left to :meth:`run`.
        """
        known = self._known()
        files = files_at(self._root, paths) if known.keys() >= set(paths) else None
        if files:
            packages = {posixpath.dirname(path) for path in known if path.endswith("__init__.py")}
            everything = [FoundFile(row.path, row.language, row.size, row.mtime_ns) for row in known.values()]
            stale = [each for each in files if _is_stale(each, known[each.path], packages)]
            self._run(_Compared(Walk(everything, [], Counter()), known, packages, stale))

    def waiting(self) -> int:
        """How many files a run would look at; 0 if there is nothing to do. Raises HearthError as a run does."""
        compared = self._compare()
        gone = compared.known.keys() - {each.path for each in compared.walk.files}
        unresolved = self._database.read_sync(lambda c: store.pending_files(c, self._project.id))
        never = self._project.indexed_at is None or self._project.problem is not None
        return len(compared.stale) + len(gone) + len(unresolved) + never

    def _compare(self) -> _Compared:
        found = walk(self._root, self._project.excludes, docs=self._project.docs)
        known = self._known()
        packages = {posixpath.dirname(each.path) for each in found.files if each.path.endswith("__init__.py")}
        stale = [each for each in found.files if _is_stale(each, known.get(each.path), packages)]
        return _Compared(found, known, packages, stale)

    def _known(self) -> dict[str, store.FileRow]:
        rows = self._database.read_sync(lambda c: store.files_of(c, self._project.id))
        return {row.path: row for row in rows}

    def _run(self, compared: _Compared) -> Indexed:
        parsed, unread = self._parse(compared)
        there = {each.path for each in compared.walk.files} - unread
        gone = [row for path, row in compared.known.items() if path not in there]
        check_root(self._root)
        self._delete(gone)
        resolved = self._resolve()
        if parsed or gone or resolved or self._project.indexed_at is None or self._project.problem:
            self._database.write_sync(self._finish)
            self._rank()
        if parsed > _MERGED_FROM:
            merge_index(self._database)
        return Indexed(parsed, resolved, len(gone), compared.walk)

    def _parse(self, compared: _Compared) -> tuple[int, set[str]]:
        """Read and store the stale files; the number of those that have changed, and the paths left out."""
        found, known, packages, stale = compared
        parsed, seen, unread = 0, 0, set[str]()
        files = [(each, known[each.path].hash if each.path in known else b"") for each in stale]
        batches = (files[start : start + _AT_ONCE] for start in range(0, len(files), _AT_ONCE))
        with in_processes(
            processes_for(len(stale)),
            partial(FileReader, self._database, self._root, packages),
        ) as read_all:
            for results in read_all(batches):
                for each in results:
                    if isinstance(each, Unread):
                        unread.add(each.path)
                        found.left_out[each.reason] += 1
                changed = [each for each in results if isinstance(each, FileRead) and _differs(each, known)]
                if changed:
                    names = self._changed_names(changed, known) if known else set[str]()
                    self._database.write_sync(partial(self._put, batch=changed, names=names))
                parsed, seen = parsed + len(changed), seen + len(results)
                self._progress("parsing", seen, len(stale))
        return parsed, unread

    def _changed_names(self, changed: Sequence[FileRead], known: Mapping[str, store.FileRow]) -> set[str]:
        names = set[str]()
        for each in changed:
            before = known.get(each.row.path)
            was = self._facts(before.hash) if before and before.version == VERSION else NO_FACTS
            names |= changed_names(was, DECODER.decode(each.facts) if each.facts else NO_FACTS)
            names |= set() if before else {_module_of(each.row.path)}
        return names

    def _facts(self, digest: bytes) -> FileFacts:
        stored = self._database.read_sync(lambda c: store.facts_of(c, digest)) if digest else None
        return DECODER.decode(stored) if stored is not None else NO_FACTS

    def _put(self, connection: apsw.Connection, batch: Sequence[FileRead], names: set[str]) -> None:
        """Store files with their definitions and text; what looked up one of the names is to be resolved again."""
        store.reopen_files_that_looked_up(connection, self._project.id, names)
        for row, facts, definitions, parts in batch:
            file = store.put_file(connection, self._project.id, row)
            if facts:
                store.put_facts(connection, row.hash, facts)
                store.put_definitions(connection, file, definitions)
            store.put_parts(connection, file, parts)

    def _delete(self, gone: Sequence[store.FileRow]) -> None:
        names = {_module_of(row.path) for row in gone}
        for row in gone:
            if row.version == VERSION:
                names |= changed_names(self._facts(row.hash), NO_FACTS)

        def delete(connection: apsw.Connection) -> None:
            store.reopen_files_that_looked_up(connection, self._project.id, names)
            store.delete_files(connection, [row.id for row in gone])

        if gone:
            self._database.write_sync(delete)

    def _finish(self, connection: apsw.Connection) -> None:
        projects.drop_unused_facts(connection)
        projects.set_indexed(connection, self._project.id, None)

    def _rank(self) -> None:
        """Rank the definitions, unless few are new: small changes hardly move the others."""
        every, new = self._database.read_sync(lambda c: graph.unranked(c, self._project.id))
        if new > every * _UNRANKED:
            found = self._database.read_sync(lambda c: ranks(c, self._project.id))
            self._database.write_sync(lambda c: graph.put_ranks(c, found))

    def _resolve(self) -> int:
        """Resolve changed files, those that looked up changed names, and those whose parameters get other values.

        What is left to do is in the database: after an interruption the next run goes on.
        """
        project = self._project.id
        waiting = self._database.read_sync(lambda c: store.pending_files(c, project))
        if not waiting:
            return 0
        names = read_names(self._database, project)
        passed = self._database.read_sync(lambda c: store.arguments_of(c, project))
        done = set[int]()
        count = processes_for(len(waiting))
        with in_processes(
            count,
            partial(FileResolver, self._database, names, _CACHED_FILES // count),
        ) as resolve_all:
            for turn in range(_ROUNDS):
                todo = sorted(waiting)
                if not todo or (turn > 1 and len(todo) > _MANY):
                    break
                waiting, seen = set(), 0  # files with callees to which something else goes than before
                for results in resolve_all(
                    resolve_batches(turn, todo, passed, size=_AT_ONCE, elsewhere=count > 1)
                ):
                    for each in results:
                        changed = passed.get(each.row.id, set()) ^ each.arguments
                        waiting |= {
                            names.places[one.callee][0] for one in changed if one.callee in names.places
                        }
                        passed[each.row.id] = each.arguments
                    again = frozenset(waiting)
                    self._database.write_sync(partial(_put_sites, results=results, again=again))
                    seen += len(results)
                    stage = "resolving" if not turn else "following arguments"
                    self._progress(stage, seen, len(todo))
                done |= set(todo)
        self._database.write_sync(lambda c: store.set_pending(c, waiting, pending=False))
        return len(done)


def merge_index(database: Database) -> None:
    """Rewrite the text index in steps; beside parts that were deleted, a search takes twice as long."""
    more = database.write_sync(lambda c: merge_step(c, store.TEXT_INDEX, first=True))
    while more:
        more = database.write_sync(lambda c: merge_step(c, store.TEXT_INDEX, first=False))


def _is_stale(found: FoundFile, known: store.FileRow | None, packages: set[str]) -> bool:
    """Whether a file has to be read. Its module is another when its folder has become a package."""
    now = (found.size, found.mtime_ns, VERSION, module_of(found, packages))
    return known is None or (known.size, known.mtime_ns, known.version, known.module) != now


def _differs(read: FileRead, known: Mapping[str, store.FileRow]) -> bool:
    before = known.get(read.row.path)
    return before is None or (read.row.hash, read.row.module) != (before.hash, before.module)


def _module_of(path: str) -> str:
    """The last name of a module: an import that found nothing may find it."""
    stem = posixpath.splitext(path)[0]
    return posixpath.basename(posixpath.dirname(path) if stem.endswith("__init__") else stem)


def _put_sites(connection: apsw.Connection, results: Sequence[Resolved], again: Iterable[int]) -> None:
    """Store what resolving files has found, except of files that another process has changed meanwhile.

    Files in ``again`` remain to be resolved.
    """
    there = [each for each in results if store.is_current(connection, each.row)]
    for each in there:
        store.put_sites(connection, each.row.id, each.sites, each.lookups, each.arguments)
    store.set_pending(connection, [each.row.id for each in there], pending=False)
    store.set_pending(connection, again, pending=True)


_DEPTH = 6


def changed_names(before: FileFacts, after: FileFacts) -> set[str]:
    """Names that appeared, vanished, or stand for something else. Lines do not count."""
    old, new = _meanings(before), _meanings(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _meanings(facts: FileFacts) -> dict[str, list[object]]:
    found: defaultdict[str, list[object]] = defaultdict(list)

    def plain(expr: Expr, depth: int = 0) -> object:
        if expr is None or depth > _DEPTH:
            return None
        if expr[0] == "c":
            return ("c", plain(facts.sites[expr[1]].callee, depth + 1))
        if expr[0] == "f":
            return ("f", facts.definitions[expr[1]].name)
        return tuple(plain(each, depth + 1) if isinstance(each, list) else each for each in expr)

    for definition in facts.definitions[1:]:
        found[last_part(definition.name)].append(
            (
                definition.kind,
                facts.definitions[definition.parent].name,
                definition.marks,
                plain(definition.result),
                [(param.name, plain(param.annotation), plain(param.default)) for param in definition.params],
                [plain(each) for each in [*definition.bases, *definition.returns, *definition.yields]],
            )
        )
    for binding in facts.bindings:
        home = facts.definitions[binding.scope]
        value = (binding.name, plain(binding.base), plain(binding.value), plain(binding.annotation))
        # A local variable matters to others by what its function returns.
        local = home.kind in ("function", "lambda") and binding.base is None
        found[home.name if local else binding.name].append(value)
    for each in facts.imports:
        found[each.alias].append((each.module, each.name, each.level))
    return found
