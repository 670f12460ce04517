"""Index a project: find its files, parse those whose content is new, resolve what the changes concern.

Two servers, or a server and a command, may index the same project: each compares hashes with the database and writes
only what differs. Every transaction is short.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from gateway.base.errors import HearthError
from gateway.base.redact import MARK, take_secrets
from gateway.code.changes import changed_names
from gateway.code.languages.facts import DECODER, ENCODER, VERSION, FileFacts
from gateway.code.languages.parse import is_code, parse
from gateway.code.parts import code_parts, document_parts
from gateway.code.resolving.files import Namesakes, resolve_file
from gateway.code.resolving.resolver import Resolver
from gateway.code.resolving.values import Value
from gateway.code.resolving.view import Modules, module_name
from gateway.code.walk import FoundFile, Walk, unsuitable, walk
from gateway.store.code import files as store
from gateway.store.code import projects
from gateway.store.db import Database

_AT_ONCE = 40  # files of a transaction
_ROUNDS = 5  # of following arguments to parameters; the later ones only for
_MANY = 40  # files at most
_NO_FACTS = FileFacts([])

Progress = Callable[[str, int, int], None]  # what is being done, how many of how many


class Indexed(NamedTuple):
    """What an indexing did."""

    parsed: int
    resolved: int
    removed: int
    walk: Walk


class _Read(NamedTuple):
    """A file that was read: its row, its facts and its text without secrets."""

    row: store.FileRow
    facts: FileFacts
    lines: list[str]


class ProjectIndexer:
    """Brings one project up to date."""

    def __init__(
        self, database: Database, project: projects.CodeProject, progress: Progress | None = None
    ) -> None:
        self._database, self._project = database, project
        self._progress = progress or (lambda stage, done, total: None)
        self._root = Path(project.path)

    def run(self) -> Indexed:
        """Index what has changed since the last time. Raises HearthError when the folder is gone or unreadable."""
        try:
            found = walk(self._root, self._project.excludes, docs=self._project.docs)
        except HearthError as error:
            problem = error.message
            if self._project.problem != problem:
                self._database.write_sync(lambda c: projects.set_problem(c, self._project.id, problem))
            raise
        known = {row.path: row for row in self._read(lambda c: store.files_of(c, self._project.id))}
        packages = {posixpath.dirname(each.path) for each in found.files if each.path.endswith("__init__.py")}
        names, changed = set[str](), set[int]()
        parsed = 0
        there = {each.path for each in found.files}
        stale = [each for each in found.files if self._is_stale(each, known.get(each.path))]
        for start in range(0, len(stale), _AT_ONCE):
            batch = []
            for each in stale[start : start + _AT_ONCE]:
                read = self._file(each, known.get(each.path), packages, found)
                if read is None:
                    there.discard(each.path)
                elif (
                    read.row.hash != (before := known.get(each.path, _NONE)).hash
                    or read.row.module != before.module
                ):
                    batch.append(read)
                    names |= changed_names(self._facts(before.hash), read.facts)
            if batch:
                changed |= set(self._database.write_sync(lambda c, batch=batch: self._put(c, batch)))  # type: ignore[misc]
            parsed += len(batch)
            self._progress("parsing", min(start + _AT_ONCE, len(stale)), len(stale))
        gone = [row for path, row in known.items() if path not in there]
        for row in gone:
            names |= changed_names(self._facts(row.hash), _NO_FACTS) | {
                posixpath.splitext(row.path)[0].rpartition("/")[2]
            }
        names |= set(_new_modules(there - known.keys()))
        if gone:
            self._database.write_sync(lambda c: store.delete_files(c, [row.id for row in gone]))
        resolved = self._resolve(changed, names) if changed or gone else 0
        if changed or gone or self._project.indexed_at is None or self._project.problem:
            self._database.write_sync(self._finish)
        return Indexed(parsed, resolved, len(gone), found)

    def _read(self, fn: Callable[[apsw.Connection], list[store.FileRow]]) -> list[store.FileRow]:
        return self._database.read_sync(fn)

    @staticmethod
    def _is_stale(found: FoundFile, known: store.FileRow | None) -> bool:
        return known is None or (known.size, known.mtime_ns) != (found.size, found.mtime_ns)

    def _facts(self, digest: bytes) -> FileFacts:
        stored = self._database.read_sync(lambda c: store.facts_of(c, digest)) if digest else None
        return DECODER.decode(stored) if stored is not None else _NO_FACTS

    def _file(
        self, found: FoundFile, known: store.FileRow | None, packages: set[str], walked: Walk
    ) -> _Read | None:
        """Read and parse a file; None when it vanished or its content excludes it."""
        try:
            source = (self._root / found.path).read_bytes()
        except OSError:
            walked.left_out["unreadable"] = walked.left_out.get("unreadable", 0) + 1
            return None
        if reason := unsuitable(source):
            walked.left_out[reason] = walked.left_out.get(reason, 0) + 1
            return None
        module = posixpath.splitext(found.path)[0] if is_code(found.language) else ""
        if found.language == "python":
            module = module_name(found.path, packages)
        digest = hashlib.blake2b(
            f"{VERSION} {found.language} {module}\0".encode() + source, digest_size=16
        ).digest()
        row = store.FileRow(0, found.path, module, found.language, digest, found.size, found.mtime_ns)
        if known is not None and known.hash == digest:
            return _Read(row, _NO_FACTS, [])
        text, secrets = without_secrets(source.decode("utf-8", "replace"))
        facts = _NO_FACTS
        if is_code(found.language):
            facts = self._facts(digest)
            if not facts.definitions:
                facts = parse(found.language, module.rpartition(".")[2], source, secrets)
        return _Read(row, facts, text.splitlines())

    def _put(self, connection: apsw.Connection, batch: Sequence[_Read]) -> list[int]:
        """Store files with their definitions and text; returns their ids."""
        written = []
        for row, facts, lines in batch:
            file = store.put_file(connection, self._project.id, row)
            written.append(file)
            if facts.definitions:
                store.put_facts(connection, row.hash, ENCODER.encode(facts))
                store.put_definitions(connection, file, definition_rows(row.module, facts))
                store.put_parts(connection, file, code_parts(row.path, lines, facts))
            else:
                store.put_parts(connection, file, document_parts(row.path, lines, row.language))
        return written

    def _finish(self, connection: apsw.Connection) -> None:
        projects.drop_unused_facts(connection)
        projects.set_indexed(connection, self._project.id, None)

    def _resolve(self, changed: set[int], names: set[str]) -> int:
        """Resolve changed files, those that looked up changed names, and those whose parameters get other values."""
        project = self._project.id
        rows = self._read(lambda c: store.files_of(c, project))
        code = {row.id for row in rows if is_code(row.language)}
        namesakes, ids = Namesakes(), dict[tuple[int, int], int]()
        for file, ordinal, number, name in self._database.read_sync(
            lambda c: store.definition_names(c, project)
        ):
            ids[file, ordinal] = number
            if name:
                namesakes.by_name.setdefault(name, []).append((file, ordinal))
        places = {number: place for place, number in ids.items()}
        waiting = changed | self._database.read_sync(lambda c: store.files_that_looked_up(c, project, names))
        passed = self._database.read_sync(lambda c: store.arguments_of(c, project))
        modules = Modules(rows, lambda digest: self._database.read_sync(lambda c: store.facts_of(c, digest)))
        done = set[int]()
        for turn in range(_ROUNDS):
            todo = sorted(waiting & code)
            if not todo or (turn > 1 and len(todo) > _MANY):
                break
            resolver = Resolver(modules, incoming(passed.values(), places))
            touched = set[int]()  # callees to which something else goes than before
            for start in range(0, len(todo), _AT_ONCE):
                results = []
                for file in todo[start : start + _AT_ONCE]:
                    resolver.begin_file()
                    sites, arguments = resolve_file(resolver, modules.view(file), ids, namesakes)
                    before = passed.get(file, set())
                    touched |= {each.callee for each in before ^ arguments}
                    passed[file] = arguments
                    results.append((file, sites, resolver.lookups, arguments))
                self._database.write_sync(lambda c, results=results: _put_sites(c, results))  # type: ignore[misc]
                self._progress(
                    "resolving" if not turn else "following arguments", start + len(results), len(todo)
                )
            done |= waiting & code
            waiting = {places[callee][0] for callee in touched if callee in places}
        return len(done)


def _new_modules(paths: Iterable[str]) -> Iterator[str]:
    """Last names of new modules: an import that found nothing may find them."""
    for path in paths:
        stem = posixpath.splitext(path)[0]
        yield posixpath.basename(posixpath.dirname(path) if stem.endswith("__init__") else stem)


_NONE = store.FileRow(0, "", "", "", b"", 0, 0)


def _put_sites(
    connection: apsw.Connection,
    results: Iterable[tuple[int, list[store.NewSite], set[str], set[store.Argument]]],
) -> None:
    for file, sites, lookups, arguments in results:
        store.put_sites(connection, file, sites, lookups, arguments)


def incoming(
    passed: Iterable[set[store.Argument]], places: dict[int, tuple[int, int]]
) -> dict[tuple[int, int], dict[str, set[Value]]]:
    """What goes to the parameters of each definition."""
    found: defaultdict[tuple[int, int], dict[str, set[Value]]] = defaultdict(dict)
    for arguments in passed:
        for each in arguments:
            if each.callee in places and each.value in places:
                value = Value(each.kind, *places[each.value])  # type: ignore[arg-type]
                found[places[each.callee]].setdefault(each.name, set()).add(value)
    return found


def definition_rows(module: str, facts: FileFacts) -> list[store.NewDefinition]:
    """The definitions of a file with their qualified names."""
    qualified: list[str] = []
    rows = []
    lambdas = 0
    for index, each in enumerate(facts.definitions):
        name = each.name
        if each.kind == "lambda":
            lambdas += 1
            name = f"<lambda{lambdas}>"
        qualified.append(f"{qualified[each.parent]}.{name}" if index else module.replace("/", "."))
        rows.append(
            store.NewDefinition(
                ordinal=index,
                parent=each.parent,
                name=each.name,
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
    return rows


def without_secrets(text: str) -> tuple[str, list[str]]:
    """The text without its secrets, in the same number of lines, and the secrets."""
    clean, removed = take_secrets(text)
    if clean.count("\n") != text.count("\n"):
        for each in removed:
            text = text.replace(each.value, MARK + "\n" * each.value.count("\n"))
        clean, _ = take_secrets(text)
    return clean, [each.value for each in removed]
