"""Index a project: find its files, parse those whose content is new, resolve what the changes concern.

Two servers, or a server and a command, may index the same project: each compares hashes with the database and writes
only what differs. Every transaction is short.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw

from gateway.base.errors import HearthError
from gateway.base.redact import MARK, take_secrets
from gateway.code.changes import changed_names
from gateway.code.languages.extractor import SIGNATURE
from gateway.code.languages.facts import DECODER, ENCODER, VERSION, FileFacts, last_part, variables
from gateway.code.languages.parse import is_code, parse
from gateway.code.outline import ranks
from gateway.code.parts import code_parts, document_parts
from gateway.code.resolving.files import Namesakes, resolve_file
from gateway.code.resolving.resolver import Resolver
from gateway.code.resolving.values import Value
from gateway.code.resolving.view import Modules, module_name
from gateway.code.source import lines_in
from gateway.code.walk import FoundFile, Walk, check_root, unsuitable, walk
from gateway.store.code import files as store
from gateway.store.code import graph, projects
from gateway.store.db import Database

_AT_ONCE = 40  # files of a transaction
_ROUNDS = 5  # of following arguments to parameters; the later ones only for
_MANY = 40  # files at most
_MOST_VALUES = 12  # of a parameter
_UNRANKED = 0.02  # share of new definitions from which on all are ranked again
_NO_FACTS = FileFacts([])
_NAMES_TYPE = re.compile(r"((export|declare|const) )*(type|enum) ")

Progress = Callable[[str, int, int], None]  # what is being done, how many of how many


class Indexed(NamedTuple):
    """What an indexing did."""

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


class _Read(NamedTuple):
    """A file that was read: its row, its facts and its text without secrets."""

    row: store.FileRow
    facts: FileFacts
    lines: list[str]


class _Resolved(NamedTuple):
    """What resolving a file has found."""

    row: store.FileRow
    sites: list[store.NewSite]
    lookups: set[str]
    arguments: set[store.Argument]


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
            return self._run()
        except HearthError as error:
            problem = error.message
            if self._project.problem != problem:
                self._database.write_sync(lambda c: projects.set_problem(c, self._project.id, problem))
            raise

    def waiting(self) -> int:
        """How many files a run would look at; 0 if there is nothing to do. Raises HearthError as a run does."""
        compared = self._compare()
        gone = compared.known.keys() - {each.path for each in compared.walk.files}
        unresolved = self._database.read_sync(lambda c: store.pending_files(c, self._project.id))
        never = self._project.indexed_at is None or self._project.problem is not None
        return len(compared.stale) + len(gone) + len(unresolved) + never

    def _compare(self) -> _Compared:
        found = walk(self._root, self._project.excludes, docs=self._project.docs)
        known = {row.path: row for row in self._read(lambda c: store.files_of(c, self._project.id))}
        packages = {posixpath.dirname(each.path) for each in found.files if each.path.endswith("__init__.py")}
        stale = [each for each in found.files if _is_stale(each, known.get(each.path), packages)]
        return _Compared(found, known, packages, stale)

    def _run(self) -> Indexed:
        found, known, packages, stale = self._compare()
        parsed = 0
        there = {each.path for each in found.files}
        for start in range(0, len(stale), _AT_ONCE):
            batch, names = [], set[str]()
            for each in stale[start : start + _AT_ONCE]:
                before = known.get(each.path, _NONE)
                read = self._file(each, before, packages, found)
                if read is None:
                    there.discard(each.path)
                elif (read.row.hash, read.row.module) != (before.hash, before.module):
                    batch.append(read)
                    if not known:
                        continue  # a first index: nothing has looked a name up
                    same_format = before.version == VERSION
                    names |= changed_names(self._facts(before.hash) if same_format else _NO_FACTS, read.facts)
                    names |= {_module_of(each.path)} if before is _NONE else set()
            if batch:
                self._database.write_sync(partial(self._put, batch=batch, names=names))
            parsed += len(batch)
            self._progress("parsing", min(start + _AT_ONCE, len(stale)), len(stale))
        gone = [row for path, row in known.items() if path not in there]
        check_root(self._root)
        self._delete(gone)
        resolved = self._resolve()
        if parsed or gone or resolved or self._project.indexed_at is None or self._project.problem:
            self._database.write_sync(self._finish)
            self._rank()
        return Indexed(parsed, resolved, len(gone), found)

    def _read(self, fn: Callable[[apsw.Connection], list[store.FileRow]]) -> list[store.FileRow]:
        return self._database.read_sync(fn)

    def _facts(self, digest: bytes) -> FileFacts:
        stored = self._database.read_sync(lambda c: store.facts_of(c, digest)) if digest else None
        return DECODER.decode(stored) if stored is not None else _NO_FACTS

    def _file(self, found: FoundFile, known: store.FileRow, packages: set[str], walked: Walk) -> _Read | None:
        """Read and parse a file; None when it vanished or its content excludes it."""
        try:
            source = (self._root / found.path).read_bytes()
        except OSError:
            walked.left_out["unreadable"] = walked.left_out.get("unreadable", 0) + 1
            return None
        if reason := unsuitable(source):
            walked.left_out[reason] = walked.left_out.get(reason, 0) + 1
            return None
        module = _module(found, packages)
        digest = hashlib.blake2b(
            f"{VERSION} {found.language} {module}\0".encode() + source, digest_size=16
        ).digest()
        row = store.FileRow(
            0, found.path, module, found.language, digest, found.size, found.mtime_ns, VERSION
        )
        if known.hash == digest:
            return _Read(row, _NO_FACTS, [])
        text, secrets = without_secrets(source.decode("utf-8", "replace"))
        facts = _NO_FACTS
        if is_code(found.language):
            facts = self._facts(digest)
            if not facts.definitions:
                facts = parse(found.language, module.rpartition(".")[2], source, secrets)
        return _Read(row, facts, lines_in(text))

    def _put(self, connection: apsw.Connection, batch: Sequence[_Read], names: set[str]) -> None:
        """Store files with their definitions and text; what looked up one of the names is to be resolved again."""
        store.reopen_files_that_looked_up(connection, self._project.id, names)
        for row, facts, lines in batch:
            file = store.put_file(connection, self._project.id, row)
            if facts.definitions:
                store.put_facts(connection, row.hash, ENCODER.encode(facts))
                store.put_definitions(connection, file, definition_rows(row.module, facts, lines))
                store.put_parts(connection, file, code_parts(row.path, lines, facts))
            else:
                store.put_parts(connection, file, document_parts(row.path, lines, row.language))

    def _delete(self, gone: Sequence[store.FileRow]) -> None:
        names = {_module_of(row.path) for row in gone}
        for row in gone:
            if row.version == VERSION:
                names |= changed_names(self._facts(row.hash), _NO_FACTS)

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
        rows = self._read(lambda c: store.files_of(c, project))
        namesakes, ids = Namesakes(), dict[tuple[int, int], int]()
        for file, ordinal, number, name in self._database.read_sync(
            lambda c: store.definition_names(c, project)
        ):
            ids[file, ordinal] = number
            if name:
                namesakes.by_name.setdefault(name, []).append((file, ordinal))
        places = {number: place for place, number in ids.items()}
        passed = self._database.read_sync(lambda c: store.arguments_of(c, project))
        modules = Modules(rows, lambda digest: self._database.read_sync(lambda c: store.facts_of(c, digest)))
        done = set[int]()
        for turn in range(_ROUNDS):
            todo = sorted(waiting)
            if not todo or (turn > 1 and len(todo) > _MANY):
                break
            resolver = Resolver(modules, incoming(passed.values(), places))
            waiting = set()  # files with callees to which something else goes than before
            for start in range(0, len(todo), _AT_ONCE):
                results: list[_Resolved] = []
                for file in todo[start : start + _AT_ONCE]:
                    resolver.begin_file()
                    sites, arguments = resolve_file(resolver, modules.view(file), ids, namesakes)
                    changed = passed.get(file, set()) ^ arguments
                    waiting |= {places[each.callee][0] for each in changed if each.callee in places}
                    passed[file] = arguments
                    results.append(_Resolved(modules.rows[file], sites, resolver.lookups, arguments))
                again = frozenset(waiting)
                self._database.write_sync(partial(_put_sites, results=results, again=again))
                self._progress(
                    "resolving" if not turn else "following arguments", start + len(results), len(todo)
                )
            done |= set(todo)
        self._database.write_sync(lambda c: store.set_pending(c, waiting, pending=False))
        return len(done)


def _is_stale(found: FoundFile, known: store.FileRow | None, packages: set[str]) -> bool:
    """Whether a file has to be read. Its module is another when its folder has become a package."""
    now = (found.size, found.mtime_ns, VERSION, _module(found, packages))
    return known is None or (known.size, known.mtime_ns, known.version, known.module) != now


def _module(found: FoundFile, packages: set[str]) -> str:
    if found.language == "python":
        return module_name(found.path, packages)
    return posixpath.splitext(found.path)[0] if is_code(found.language) else ""


def _module_of(path: str) -> str:
    """The last name of a module: an import that found nothing may find it."""
    stem = posixpath.splitext(path)[0]
    return posixpath.basename(posixpath.dirname(path) if stem.endswith("__init__") else stem)


_NONE = store.FileRow(0, "", "", "", b"", 0, 0, 0)


def _put_sites(connection: apsw.Connection, results: Sequence[_Resolved], again: Iterable[int]) -> None:
    """Store what resolving files has found, except of files that another process has changed meanwhile.

    Files in ``again`` remain to be resolved.
    """
    there = [each for each in results if store.is_current(connection, each.row)]
    for each in there:
        store.put_sites(connection, each.row.id, each.sites, each.lookups, each.arguments)
    store.set_pending(connection, [each.row.id for each in there], pending=False)
    store.set_pending(connection, again, pending=True)


def incoming(
    passed: Iterable[set[store.Argument]], places: dict[int, tuple[int, int]]
) -> dict[tuple[int, int], dict[str, set[Value]]]:
    """What goes to the parameters of each definition. One that takes anything says too little for its time."""
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


def definition_rows(module: str, facts: FileFacts, lines: Sequence[str]) -> list[store.NewDefinition]:
    """The definitions of a file with their qualified names."""
    qualified: list[str] = []
    rows = []
    lambdas = 0
    for index, each in enumerate(facts.definitions):
        name = each.name.removeprefix("this").lstrip(".")
        if each.kind == "lambda":
            lambdas += 1
            name = f"<lambda{lambdas}>"
        qualified.append(f"{qualified[each.parent]}.{name}" if index else module.replace("/", "."))
        rows.append(
            store.NewDefinition(
                ordinal=index,
                parent=each.parent,
                name=last_part(each.name),
                qualified=qualified[-1],
                kind="method"
                if each.kind == "function" and facts.definitions[each.parent].kind == "class"
                else each.kind,
                line=each.line,
                end_line=each.end_line,
                signature=each.signature,
                doc=each.doc,
            )
        )
    for name, line in variables(facts).items():
        text = lines[line - 1].strip() if line <= len(lines) else name
        rows.append(
            store.NewDefinition(
                ordinal=len(rows),
                parent=0,
                name=name,
                qualified=f"{qualified[0]}.{name}",
                kind="type" if _NAMES_TYPE.match(text) else "variable",
                line=line,
                end_line=line,
                signature=text if len(text) <= SIGNATURE else f"{text[: SIGNATURE - 1]}…",
                doc="",
            )
        )
    return rows


def without_secrets(text: str) -> tuple[str, list[str]]:
    """The text without its secrets, in the same number of lines, and the secrets."""
    clean, removed = take_secrets(text)
    if clean.count("\n") != text.count("\n"):
        for each in removed:
            text = text.replace(each.value, MARK + "\n" * each.value.count("\n"))
        clean, _ = take_secrets(text)
    return clean, [each.value for each in removed]
