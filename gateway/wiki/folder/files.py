"""The files of a folder that become pages, in one language, with a title for each."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gateway.base.patterns import any_case
from gateway.wiki.folder.dialects import front_title
from gateway.wiki.folder.markdown import extract_markdown
from gateway.wiki.source import Section
from gateway.wiki.wikitext.protect import decode_entities

HTML = frozenset({".html", ".htm", ".xhtml"})
MARKDOWN = frozenset({".md", ".markdown"})
TEXT = frozenset({".txt", ".text"})
# Files beside a manual that are no pages.
_NOT_PAGES = frozenset({"cmakelists", "copying", "license", "licence", "requirements", "robots"})
MAX_BYTES = 4 * 1024 * 1024  # as for a page of an export
_LONGEST_LINE = 100  # characters of a text's first line that is its title
_HEAD = 64 * 1024  # characters in which a title is looked for

# ``intro.de.html`` beside ``intro.en.html``, as Apache's content negotiation has them.
_LANGUAGE = re.compile(r"(.+)\.([a-z]{2}(?:[_-][A-Za-z]{2,4})?)")
_FOLDER_LANGUAGE = any_case(r"[a-z]{2}(?:[_-][a-z]{2,4})?")
_TITLE = any_case(r"<title[^<>]*>([^<]*)</title>")
_HEADING = any_case(r"<h([1-6])[^<>]*>(.{0,2000}?)</h\1\s*>", re.S)
_TAG = re.compile(r"<[^<>]*>")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
# Generators of manuals number headings. A number needs its dot: "3 ways" begins with none.
_NUMBER = any_case(
    r"(?:(?:chapter|part|appendix)\s+[0-9A-Z]+[.:]\s*|(?:chapter|appendix)\s+[0-9A-Z]{1,2}\s+|(?:[0-9]+|[A-Z])(?:\.[0-9]+)*\.\s+|[A-Z]?[0-9]*(?:\.[0-9]+)+\s+)",
)
_BARE = re.compile(r"([0-9]{1,3})\s+(?=\S)")
_SITE = re.compile(r"\s+(?:[|–—·:]|::|-{1,2})\s+")


class PageFile(Struct, frozen=True):
    """A file with the title that its page gets, unique in the folder."""

    path: Path
    title: str


def page_files(folder: Path, language: str, unread: Callable[[OSError], None]) -> list[PageFile]:
    """The pages of a folder, by path. Of files that exist in several languages, those in ``language``.

    Files and folders that cannot be read are left out, and ``unread`` is told.
    """
    paths, heads = [], []
    for path in _in_language(sorted(_paths(folder, unread)), language):
        try:
            heads.append(_names(path))
            paths.append(path)
        except OSError as error:
            unread(error)
    ends = Counter(_SITE.split(name)[-1] for name, _ in heads if _SITE.search(name))
    often = Counter(name for name, _ in heads)
    wanted = []
    for path, (name, heading) in zip(paths, heads, strict=True):
        parts = _SITE.split(name)
        if len(parts) > 1 and ends[parts[-1]] > max(2, len(paths) // 2):  # the site's own name
            name = name[: name.rindex(parts[-1])].rstrip(" |–—·:-")
        if often[name] > 1 and heading:
            name = heading
        wanted.append(unnumbered(name) or heading or path.stem)
    return _unique(folder, paths, wanted)


def read_text(path: Path) -> str:
    """The file's text in UTF-8, UTF-16 with its mark, the encoding that it declares, or else Windows-1252."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    declared = _CHARSET.search(data, 0, 2048)
    for encoding in ("utf-8-sig", declared[1].decode() if declared else "cp1252"):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def unnumbered(heading: str) -> str:
    """A heading without the number of its chapter or section."""
    number = _NUMBER.match(heading)
    return heading[number.end() :] if number and number.end() < len(heading) else heading


def without_numbers(sections: Sequence[Section]) -> list[Section]:
    """Sections without the numbers of their headings; "1 Start" has one if "2 End" follows on its level."""
    plain = [unnumbered(each.heading) for each in sections]
    bare = [(each.level, _BARE.match(heading)) for each, heading in zip(sections, plain, strict=True)]
    counted = defaultdict[int, list[int]](list)
    for level, number in bare:
        if number:
            counted[level].append(int(number[1]))
    for index, (level, number) in enumerate(bare):
        if number and counted[level] == list(range(1, len(counted[level]) + 1)) and len(counted[level]) > 1:
            plain[index] = plain[index][number.end() :]
    return [replace(each, heading=heading) for each, heading in zip(sections, plain, strict=True)]


def _paths(folder: Path, unread: Callable[[OSError], None]) -> Iterator[Path]:
    """Files with a known ending; links, hidden ones and what is no file are left out."""
    for top, folders, files in os.walk(folder, onerror=unread):
        folders[:] = [name for name in folders if not name.startswith(".")]
        sources = set(files)
        for name in files:
            path = Path(top, name)
            kind = path.suffix.lower()
            if kind not in HTML | MARKDOWN | TEXT or name.startswith("."):
                continue
            if kind in TEXT and (
                path.stem.lower() in _NOT_PAGES or sources & {path.stem + each for each in HTML | MARKDOWN}
            ):
                continue
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
            except OSError as error:
                unread(error)


def _in_language(paths: list[Path], language: str) -> list[Path]:
    versions: dict[Path, dict[str, Path]] = defaultdict(dict)
    for path in paths:
        match = _LANGUAGE.fullmatch(path.stem)
        if match:
            versions[path.with_name(match[1] + path.suffix)][match[2].lower()] = path
    dropped = set()
    for plain, found in versions.items():
        if len(found) > 1 or plain in paths:
            kept = found.get(language.lower(), plain if plain in paths else None)
            dropped |= {path for path in (plain, *found.values()) if path != kept}
    known = set(paths)
    return [path for path in paths if path not in dropped and known.isdisjoint(_translated(path, language))]


def _translated(path: Path, language: str) -> Iterator[Path]:
    """Where the file is in ``language``, if a folder of its path is named by another one: ``de/intro.html``."""
    for index, name in enumerate(path.parts[:-1]):
        if _FOLDER_LANGUAGE.fullmatch(name) and name.lower() != language.lower():
            yield Path(*path.parts[:index], language, *path.parts[index + 1 :])


def _names(path: Path) -> tuple[str, str]:
    """The title that the file states, or its first heading, and the first heading."""
    text, kind = read_text(path)[:_HEAD], path.suffix.lower()
    if kind in TEXT:
        first_line = _line(text.strip().partition("\n")[0])
        return (first_line, first_line) if len(first_line) <= _LONGEST_LINE else ("", "")
    if kind in MARKDOWN:
        headings = sorted(
            (each for each in extract_markdown(text) if each.heading), key=lambda each: each.level > 1
        )
        heading = _line(headings[0].heading) if headings else ""
        return _line(front_title(text)) or heading, heading
    title, first = _TITLE.search(text), _HEADING.search(text)
    heading = _line(_TAG.sub("", first[2])) if first else ""
    return (_line(title[1]) if title else "") or heading, unnumbered(heading)


def _line(text: str) -> str:
    return " ".join(decode_entities(text).split())[:200]


def _unique(folder: Path, paths: Iterable[Path], wanted: list[str]) -> list[PageFile]:
    """Pages with titles; the same titles get the path behind them, with its ending where that is the same, too."""
    often = Counter(title.casefold() for title in wanted)
    found, taken = [], set[str]()
    for path, title in zip(paths, wanted, strict=True):
        name = path.relative_to(folder)
        ways = [title] if often[title.casefold()] == 1 else []
        ways += [f"{title} ({name.with_suffix('')})", f"{title} ({name})"]
        numbered = (f"{title} ({name}, {number})" for number in count(2))
        one = next(way for way in chain(ways, numbered) if way not in taken)
        taken.add(one)
        found.append(PageFile(path, one))
    return found
