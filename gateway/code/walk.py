"""Find the files of a project to index. Nothing is written into a project.

Four layers exclude files: names and suffixes; `.gitignore` files, nested ones included; the content (binary, minified,
too large); and the globs of the registry.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from gateway.base.errors import InvalidRequestError
from gateway.code.languages.parse import is_code, language_of

MAX_BYTES = 1_000_000
MAX_LINE = 3000  # characters
_PROBED = 1024  # bytes, for a NUL

FOLDERS = frozenset(
    """
    node_modules .git .svn .hg dist build out coverage __pycache__ .venv venv .tox .nox .mypy_cache .ruff_cache
    .pytest_cache .hypothesis .idea .next .cache bower_components site-packages
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
# Only languages and documents that hearth knows are read at all, so of the document's list of suffixes those remain
# that end in one of theirs.
SUFFIXES = (".min.js", ".min.mjs", ".bundle.js", ".chunk.js")

Spec = tuple[str, GitIgnoreSpec]  # the folder that it holds for, with a slash at its end


class FoundFile(NamedTuple):
    """A file to index; ``path`` is relative, with slashes."""

    path: str
    language: str
    size: int
    mtime_ns: int


class Walk(NamedTuple):
    """The files of a project and the folders that hold them. ``left_out`` counts excluded files by reason."""

    files: list[FoundFile]
    folders: list[str]
    left_out: Counter[str]


def walk(root: Path, excludes: Sequence[str], *, docs: bool = False) -> Walk:
    """Find the files of a project. Links are not followed, so a loop of them is harmless.

    Raises InvalidRequestError when the root is not a folder that can be read.
    """
    check_root(root)
    own = exclusion(excludes)
    result = Walk([], [], Counter())
    waiting: list[tuple[str, tuple[Spec, ...]]] = [("", ())]
    while waiting:
        folder, specs = waiting.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise InvalidRequestError(f"{root} cannot be read: {error.strerror}", param="path") from None
            result.left_out["unreadable"] += 1
            continue
        result.folders.append(folder)
        if any(entry.name == ".gitignore" for entry in entries):
            specs = (*specs, *_ignores(root / folder / ".gitignore", f"{folder}/" if folder else ""))
        for entry in reversed(entries):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in FOLDERS and not _ignored(path + "/", specs) and not own(path + "/"):
                    waiting.append((path, specs))
                continue
            reason = _reason(entry, path, specs, own, docs)
            if isinstance(reason, FoundFile):
                result.files.append(reason)
            elif reason:
                result.left_out[reason] += 1
    result.files.sort()
    return result


def files_at(root: Path, paths: Iterable[str]) -> list[FoundFile] | None:
    """Files that a walk has found before, as it would find them now; None where only a walk can tell."""
    found = []
    for path in sorted(paths):
        language = language_of(path)
        try:
            state = (root / path).lstat()
        except OSError:
            return None
        if language is None or not stat.S_ISREG(state.st_mode) or state.st_size > MAX_BYTES:
            return None
        found.append(FoundFile(path, language, state.st_size, state.st_mtime_ns))
    return found


def check_root(root: Path) -> None:
    """Raise InvalidRequestError unless the folder of a project is there."""
    if not root.is_dir():
        raise InvalidRequestError(f"{root} is not a folder", param="path")


def exclusion(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether the registry's globs exclude a path. Raises InvalidRequestError for one that is no pattern."""
    try:
        spec = GitIgnoreSpec.from_lines(globs)
    except ValueError as error:
        raise InvalidRequestError(
            f"`--exclude` has a glob that is no pattern: {error}", param="exclude"
        ) from None
    return lambda path: spec.match_file(path)


def unsuitable(source: bytes) -> str | None:
    """Why a file's content is not indexed."""
    if b"\0" in source[:_PROBED]:
        return "binary"
    if len(source) > MAX_BYTES:
        return "over 1 MB"
    longest = max(map(len, source.split(b"\n")))
    if longest > MAX_LINE and max(map(len, source.decode("utf-8", "replace").split("\n"))) > MAX_LINE:
        return "minified"
    return None


def _reason(
    entry: os.DirEntry[str], path: str, specs: tuple[Spec, ...], own: Callable[[str], bool], docs: bool
) -> FoundFile | str | None:
    """The file, or why it is left out; None for one of a kind that is never indexed."""
    language = language_of(entry.name)
    if language is None or entry.is_symlink():
        return None
    if not path.isprintable():
        return "with an unprintable name"
    if docs and is_code(language):
        return None
    if entry.name.endswith(SUFFIXES):
        return "minified"
    if _ignored(path, specs):
        return "ignored by git"
    if own(path):
        return "excluded"
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return "unreadable"
    if not stat.S_ISREG(state.st_mode):
        return None
    if state.st_size > MAX_BYTES:
        return "over 1 MB"
    return FoundFile(path, language, state.st_size, state.st_mtime_ns)


def _ignores(file: Path, folder: str) -> Iterator[Spec]:
    """The patterns of a `.gitignore`; those of one that cannot be read or understood are not applied, as in git."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for attempt in (lines, [line for line in lines if _is_pattern(line)]):
        try:
            yield folder, GitIgnoreSpec.from_lines(attempt)
            return
        except ValueError:
            continue


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _ignored(path: str, specs: tuple[Spec, ...]) -> bool:
    """The innermost `.gitignore` with a matching pattern decides."""
    for folder, spec in reversed(specs):
        decided = spec.check_file(path.removeprefix(folder)).include
        if decided is not None:
            return decided
    return False
