"""Convert FOLDOC, as Debian's package ``dict-foldoc`` installs it, to a MediaWiki XML export.

    apt install dict-foldoc
    python eval/foldoc.py build/foldoc.xml
    hearth import-wiki build/foldoc.xml --data-dir build/foldoc

The first headword of an entry becomes its title, the others become redirects, cross-references become links. Entries
with the same title become one page. FOLDOC has its own licence (``/usr/share/doc/dict-foldoc/copyright``); neither the
dictionary nor the export is part of hearth.
"""

from __future__ import annotations

import argparse
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_FOLDER = Path("/usr/share/dictd")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_ABOUT = "00-database"  # headwords of entries about the file itself
_MARGIN = 3  # spaces before each line of an entry's text
# At the end of an entry, as FOLDOC explains; by itself it reads like a date of what the entry is about.
_UPDATED = re.compile(r"\((\d{4}-\d\d-\d\d)\)")
_REFERENCE = re.compile(r"\{([^{}]*)\}")
_ADDRESS = re.compile(r"(.*?)\s*\(((?:https?|ftp)://[^\s()]+(?:\([^\s()]*\)[^\s()]*)?)\)", re.DOTALL)
_MARKUP = re.compile(r"[&<>\[\]{}|]|''+|^[*#:;=\s-]|__(?=[A-Z])")
_HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
<siteinfo><sitename>Free On-line Dictionary of Computing</sitename><dbname>foldoc</dbname>
<base>https://foldoc.org/FOLDOC</base><case>case-sensitive</case>
<namespaces><namespace key="0" case="case-sensitive" /></namespaces></siteinfo>
"""


def entries(data: bytes, index: str) -> Iterator[tuple[list[str], str]]:
    """Yield headwords and text of each entry of a dictd database, in the order of ``index``."""
    seen: set[tuple[int, int]] = set()
    for line in index.splitlines():
        word, *place = line.split("\t")
        offset, size = map(_number, place)
        if word.startswith(_ABOUT) or (offset, size) in seen:
            continue
        seen.add((offset, size))
        head, _, text = data[offset : offset + size].decode("utf-8").partition("\n\n")
        yield [name.strip() for name in head.splitlines() if name.strip()], text


def export(data: bytes, index: str) -> str:
    """Return the whole MediaWiki XML export."""
    texts: dict[str, str] = {}
    redirects: dict[str, str] = {}
    for (title, *others), text in entries(data, index):
        texts[title] = "\n\n".join(filter(None, [texts.get(title), wikitext(text)]))
        for name in others:
            redirects.setdefault(name, title)
    pages = [_page(title, text) for title, text in texts.items()]
    pages += [_redirect(name, title) for name, title in redirects.items() if name not in texts]
    return _HEAD + "".join(pages) + "</mediawiki>\n"


def wikitext(entry: str) -> str:
    """Convert an entry's text: paragraphs on one line each, indented lines as ``<pre>``."""
    done = []
    for block in re.split(r"\n\s*\n", entry.expandtabs()):
        lines = [line.rstrip() for line in block.split("\n") if line.strip()]
        if any(line.startswith(" " * (_MARGIN + 2)) for line in lines):
            inner = "\n".join(line.removeprefix(" " * _MARGIN) for line in lines)
            done.append(f"<pre>\n{escape(_REFERENCE.sub(lambda match: match[1], inner))}\n</pre>")
        elif lines:
            text = " ".join(line.strip() for line in lines)
            updated = _UPDATED.fullmatch(text)
            done.append(f"Last updated: {updated[1]}" if updated else _paragraph(text))
    return "\n\n".join(done)


def _number(digits: str) -> int:
    """Decode a number of the index: base 64, most significant digit first."""
    value = 0
    for digit in digits:
        value = value * 64 + _DIGITS.index(digit)
    return value


def _paragraph(text: str) -> str:
    parts, at = [], 0
    for match in _REFERENCE.finditer(text):
        parts += [_plain(text[at : match.start()], first=not at), _link(match[1])]
        at = match.end()
    return "".join([*parts, _plain(text[at:], first=not at)])


def _link(content: str) -> str:
    if address := _ADDRESS.fullmatch(content):
        label, url = address.groups()
        return f"[{url} {_plain(label)}]" if label else url
    return _plain(content) if set(content) & set("[]<>|#") else f"[[{content}]]"


def _plain(text: str, *, first: bool = False) -> str:
    """Escape what wikitext would read as markup; only the ``first`` character of a paragraph can begin a list."""

    def escaped(match: re.Match[str]) -> str:
        return "".join(f"&#{ord(sign)};" for sign in match[0])

    if first:
        return _MARKUP.sub(escaped, text)
    return text[:1] and _MARKUP.sub(escaped, "x" + text)[1:]


def _page(title: str, text: str) -> str:
    return (
        f"<page><title>{escape(title)}</title><ns>0</ns><revision><id>{1 + (zlib.crc32(text.encode()) >> 1)}</id>"
        f"<model>wikitext</model><text>{escape(text)}</text></revision></page>\n"
    )


def _redirect(name: str, title: str) -> str:
    return (
        f"<page><title>{escape(name)}</title><ns>0</ns><redirect title={quoteattr(title)} /><revision><id>1</id>"
        f"<model>wikitext</model><text>#REDIRECT [[{escape(title)}]]</text></revision></page>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="the XML file to write")
    parser.add_argument(
        "--folder", type=Path, default=_FOLDER, help="where foldoc.dict.dz and foldoc.index are"
    )
    given = parser.parse_args()
    try:
        data = gzip.decompress((given.folder / "foldoc.dict.dz").read_bytes())
        index = (given.folder / "foldoc.index").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        parser.exit(1, f"{error.filename} is missing: apt install dict-foldoc\n")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(export(data, index), encoding="utf-8")


if __name__ == "__main__":
    main()
