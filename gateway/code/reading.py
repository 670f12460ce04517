"""From a file of a project to what the index holds of it: facts, definitions with their names, and parts for search."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gateway.base.redact import MARK, take_secrets
from gateway.base.structs import view
from gateway.code.languages.extractor import SIGNATURE
from gateway.code.languages.facts import DECODER, ENCODER, VERSION, FileFacts, last_part, shortened, variables
from gateway.code.languages.parse import is_code, parse
from gateway.code.parts import code_parts, document_parts
from gateway.code.resolving.view import module_name
from gateway.code.source import lines_in
from gateway.code.walk import FoundFile, unsuitable
from gateway.store.code import files as store
from gateway.store.db import Database

NO_FACTS = FileFacts([])
_NAMES_TYPE = re.compile(r"((export|declare|const) )*(type|enum) ")


class FileRead(NamedTuple):
    """A file that was read. ``facts`` are encoded; empty for documents, and for what the index has already."""

    row: store.FileRow
    facts: bytes = b""
    definitions: Sequence[store.NewDefinition] = ()
    parts: Sequence[store.Part] = ()


class Unread(NamedTuple):
    """A file that cannot be read, or whose content excludes it."""

    path: str
    reason: str


class FileReader:
    """Reads files of one project; ``packages`` are its folders with an `__init__`."""

    def __init__(self, database: Database, root: Path, packages: set[str]) -> None:
        self._database, self._root, self._packages = database, root, packages

    def __call__(self, batch: Sequence[tuple[FoundFile, bytes]]) -> list[FileRead | Unread]:
        """Read files; beside each stands the hash that the index knows, or nothing."""
        return [self._read(*each) for each in batch]

    def _read(self, found: FoundFile, known: bytes) -> FileRead | Unread:
        try:
            source = (self._root / found.path).read_bytes()
        except OSError:
            return Unread(found.path, "unreadable")
        if reason := unsuitable(source):
            return Unread(found.path, reason)
        module = module_of(found, self._packages)
        salt = f"{VERSION} {found.language} {module}\0".encode()
        digest = hashlib.blake2b(salt + source, digest_size=16).digest()
        row = store.FileRow(
            0, found.path, module, found.language, digest, found.size, found.mtime_ns, VERSION
        )
        if known == digest:
            return FileRead(row)
        text, secrets = without_secrets(source.decode("utf-8", "replace"))
        lines = lines_in(text)
        if not is_code(found.language):
            return FileRead(row, parts=[*document_parts(row.path, lines, row.language)])
        stored = self._database.read_sync(lambda c: store.facts_of(c, digest))
        if stored is None:
            facts = parse(found.language, module.rpartition(".")[2], source, secrets)
            stored = ENCODER.encode(facts)
        else:
            facts = DECODER.decode(stored)
        parts = [*code_parts(row.path, lines, facts)]
        return FileRead(row, stored, definition_rows(row.module, facts, lines), parts)


def module_of(found: FoundFile, packages: set[str]) -> str:
    if found.language == "python":
        return module_name(found.path, packages)
    return posixpath.splitext(found.path)[0] if is_code(found.language) else ""


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
            view(
                store.NewDefinition,
                each,
                ordinal=index,
                name=last_part(each.name),
                qualified=qualified[-1],
                kind="method"
                if each.kind == "function" and facts.definitions[each.parent].kind == "class"
                else each.kind,
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
                signature=shortened(text, SIGNATURE),
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
