"""The first pass over wikitext: set aside what is not wikitext (code, nowiki, math), drop what is not shown.

A placeholder, a number between two Unicode noncharacters, replaces protected text until the last pass, so no other pass
can change it.
"""

from __future__ import annotations

import html
import re

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.wiki.scripts import without_marks

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_BLOCK_LINE = re.compile(f"\\s*{_OPEN}(\\d+){_CLOSE}\\s*")

_CODE = frozenset({"syntaxhighlight", "source"})
_INLINE = frozenset({"nowiki", "math", "chem", "ce"})
_DROPPED = frozenset(
    {
        "ref", "references", "gallery", "timeline", "imagemap", "templatestyles", "style", "script",
        "includeonly", "score", "graph", "categorytree", "indicator", "inputbox",
    }
)  # fmt: skip
_TAGS = sorted({"pre"} | _CODE | _INLINE | _DROPPED, key=len, reverse=True)
_START = any_case(rf"<!--|<({'|'.join(_TAGS)})((?:[\s/][^<>]{{0,1000}})?)>")
_END = {tag: any_case(rf"</{tag}\s{{0,20}}>") for tag in _TAGS}
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PRE_NOWIKI = any_case(r"</?nowiki\s{0,20}>")


class ProtectedText(Struct, frozen=True):
    """Text that no later pass may change; a ``block`` stands on lines of its own."""

    text: str
    block: bool


def decode_entities(text: str) -> str:
    """Decode ``&lt;`` and the like, only with a semicolon: ``&not`` in a program is not an entity."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text)


def protect(text: str) -> tuple[str, list[ProtectedText]]:
    """The text with placeholders, and the texts they replace. Linear in the length of the text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = without_marks(text)
    out: list[str] = []
    protected: list[ProtectedText] = []
    unclosed: set[str] = set()  # tags without a further end: searching again would be quadratic
    position = 0
    while match := _START.search(text, position):
        out.append(text[position : match.start()])
        position = match.end()
        tag = (match[1] or "").lower()
        if not tag:
            position = _after_comment(text, match.start(), out)
        elif match[0].endswith("/>"):
            continue
        elif tag in unclosed or not (end := _END[tag].search(text, position)):
            unclosed.add(tag)
            out.append(match[0])
        else:
            content, position = text[position : end.start()], end.end()
            if tag not in _DROPPED:
                piece = _protected(tag, match[2].lower(), content)
                out.append(_placeholder(piece, len(protected), out, text, position))
                protected.append(piece)
    out.append(text[position:])
    return "".join(out), protected


def restore(text: str, protected: list[ProtectedText]) -> str:
    return _PLACEHOLDER.sub(lambda match: protected[int(match[1])].text, text)


def block_of(line: str, protected: list[ProtectedText]) -> ProtectedText | None:
    """The block whose placeholder is the whole line."""
    match = _BLOCK_LINE.fullmatch(line)
    piece = protected[int(match[1])] if match else None
    return piece if piece is not None and piece.block else None


def _protected(tag: str, attributes: str, content: str) -> ProtectedText:
    if tag in _CODE:
        # Like MediaWiki, drop blank lines before the code and white space after it.
        if "inline" in attributes.split():
            return ProtectedText(content.strip(), block=False)
        return ProtectedText(content.lstrip("\n").rstrip("\n"), block=True)
    if tag == "pre":
        shown = decode_entities(_PRE_NOWIKI.sub("", content))
        return ProtectedText(shown.removeprefix("\n").removesuffix("\n"), block=True)
    if tag == "nowiki":
        return ProtectedText(decode_entities(content), block=False)
    return ProtectedText(content.strip(), block=False)


def _placeholder(piece: ProtectedText, number: int, out: list[str], text: str, position: int) -> str:
    """A placeholder; that of a block gets a line of its own."""
    mark = f"{_OPEN}{number}{_CLOSE}"
    if not piece.block:
        return mark
    before = next((part for part in reversed(out) if part), "\n")
    starts = before.endswith("\n") or before.rpartition("\n")[2].isspace()
    return ("" if starts else "\n") + mark + ("" if text.startswith("\n", position) else "\n")


def _after_comment(text: str, start: int, out: list[str]) -> int:
    """Index after a comment, and after its line when the comment is alone on it."""
    end = text.find("-->", start)
    if end < 0:
        return len(text)
    position = end + 3
    alone = not out or not out[-1] or out[-1].endswith("\n")
    if alone and text.startswith("\n", position) and (start == 0 or text[start - 1] == "\n"):
        return position + 1
    return position
