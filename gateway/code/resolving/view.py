"""The facts of a file, indexed for look-ups, and the modules of a project."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from msgspec import Raw

from gateway.code.languages.facts import (
    SITE_DECODER,
    VIEW_DECODER,
    Binding,
    CodeSite,
    Import,
    Param,
    ViewedFacts,
    variables,
)
from gateway.store.code.files import FileRow

_SCRIPT_SUFFIXES = ("", ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_NO_FACTS = ViewedFacts()
_ANY_TIME = -1
NEVER = 1 << 30  # a line after every other


class Candidate(NamedTuple):
    """Possible values of a name in a scope, each from a line on."""

    line: int
    sometimes: bool
    what: int | Binding | Import | Param


class View:
    """One file."""

    def __init__(self, row: FileRow, facts: ViewedFacts) -> None:
        self.id, self.path, self.module = row.id, row.path, row.module
        self.python = row.language == "python"
        self.definitions, self.imports = facts.definitions, facts.imports
        self._sites: list[CodeSite | Raw] = [*facts.sites]
        self.roots, self.taken_by = facts.roots, facts.taken_by
        # By name: their ordinals follow those of the definitions in the facts.
        self.variables = {name: len(facts.definitions) + at for at, name in enumerate(variables(facts))}
        self.stars = [each for each in facts.imports if each.name == "*"]
        self.attributes: defaultdict[str, list[Binding]] = defaultdict(list)
        self._names: defaultdict[tuple[int, str], list[Candidate]] = defaultdict(list)
        for index, definition in enumerate(facts.definitions[1:], 1):
            # JavaScript's functions are known before their line.
            line = definition.line if self.python else 0
            self._names[definition.parent, definition.name].append(Candidate(line, False, index))
            for param in definition.params:
                self._names[index, param.name].append(Candidate(0, False, param))
        for each in facts.imports:
            self._names[each.scope, each.alias].append(Candidate(each.line, False, each))
        for binding in sorted(facts.bindings, key=lambda binding: binding.item):
            if binding.base is not None:
                self.attributes[binding.name].append(binding)
                continue
            scope = self.home(binding.scope, binding.name) if binding.item else binding.scope
            line = binding.line if scope == binding.scope else _ANY_TIME
            self._names[scope, binding.name].append(Candidate(line, binding.sometimes, binding))
        for found in self._names.values():
            found.sort(key=lambda candidate: candidate.line)
        self.prototypes = {
            binding.base[1][1]
            for bindings in self.attributes.values()
            for binding in bindings
            if binding.base is not None and binding.base[0] == "a" and binding.base[2] == "prototype"
            if binding.base[1] is not None and binding.base[1][0] == "n"
        }

    def site(self, index: int) -> CodeSite:
        found = self._sites[index]
        if isinstance(found, Raw):
            found = self._sites[index] = SITE_DECODER.decode(found)
        return found

    def sites(self) -> Iterator[CodeSite]:
        return map(self.site, range(len(self._sites)))

    def candidates(self, scope: int, name: str, line: int = NEVER) -> list[Candidate]:
        """Possible values of ``name`` in this scope alone when ``line`` runs: the last sure one and later ones."""
        found = self._names.get((scope, name), [])
        if len(found) < 2:
            return found
        before = [each for each in found if each.line <= line] or found
        sure = max((i for i, each in enumerate(before) if not each.sometimes), default=0)
        dated = [each for each in before[sure:] if each.line != _ANY_TIME]
        return dated + [each for each in found if each.line == _ANY_TIME]

    def home(self, scope: int, name: str) -> int:
        """The scope that binds a name for this one; -1 if none does."""
        while scope >= 0 and (scope, name) not in self._names:
            scope = self.definitions[scope].parent
        return scope

    def enclosing_class(self, scope: int) -> int | None:
        """The class of the innermost method around a scope."""
        while scope > 0:
            parent = self.definitions[scope].parent
            if self.definitions[parent].kind == "class" and self.definitions[scope].kind == "function":
                return parent
            scope = parent
        return None


class Modules:
    """The files of a project, by the names under which they are imported; ``cached`` of them stay in memory."""

    def __init__(self, rows: Iterable[FileRow], facts: Callable[[bytes], bytes | None], cached: int) -> None:
        self.rows = {row.id: row for row in rows}
        self._facts = facts
        self.view: Callable[[int], View] = lru_cache(cached)(self._read)
        self._paths = {row.path: row.id for row in self.rows.values()}
        self._names: defaultdict[str, list[int]] = defaultdict(list)
        for row in self.rows.values():
            for name in {row.module, dotted(row.path)} if row.language == "python" else ():
                self._names[name].append(row.id)

    def _read(self, file: int) -> View:
        stored = self._facts(self.rows[file].hash)
        return View(self.rows[file], VIEW_DECODER.decode(stored) if stored is not None else _NO_FACTS)

    def python(self, view: View, module: str, level: int) -> int | None:
        """The file that an import in ``view`` names."""
        if level:
            package = view.module.split(".")
            if not view.path.endswith("/__init__.py") and view.path != "__init__.py":
                package = package[:-1]
            package = package[: len(package) - level + 1]
            module = ".".join([*package, module] if module else package)
        found = self._names.get(module, [])
        if len(found) == 1:
            return found[0]
        if not found:  # beside the script
            beside = posixpath.join(posixpath.dirname(view.path), module.replace(".", "/"))
            return self._paths.get(f"{beside}.py", self._paths.get(f"{beside}/__init__.py"))
        here = view.path.split("/")
        return max(found, key=lambda file: (_shared(here, self.rows[file].path.split("/")), -file))

    def script(self, view: View, module: str) -> int | None:
        """The file that a relative import of JavaScript or TypeScript names."""
        if not module.startswith("."):
            return None
        base = posixpath.normpath(posixpath.join(posixpath.dirname(view.path), module))
        stems = [base, *([base[:-3]] if base.endswith(".js") else []), posixpath.join(base, "index")]
        for stem in stems:
            for suffix in _SCRIPT_SUFFIXES:
                if (file := self._paths.get(stem + suffix)) is not None:
                    return file
        return None


def dotted(path: str) -> str:
    """The module name of a path."""
    parts = posixpath.splitext(path)[0].split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def module_name(path: str, packages: set[str]) -> str:
    """The module name of a Python file within its outermost package, or in the project if it is in none.

    ``packages`` are the folders with an `__init__`.
    """
    folder = posixpath.dirname(path)
    root = folder if folder in packages else ""
    while folder and folder in packages:
        root = folder = posixpath.dirname(folder)
    return dotted(path[len(root) :].lstrip("/"))


def _shared(first: list[str], second: list[str]) -> int:
    """The number of leading folders that two paths share."""
    return next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
