"""What generators of sites add to Markdown: front matter, templates, admonitions and tabs, HTML, comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.base.patterns import any_case
from gateway.wiki.wikitext.protect import decode_entities

FENCE = re.compile(r"[ ]*(`{3,}(?=[^`]*\Z)|~{3,}).*")
_FRONT = re.compile(
    r"\A(?:---[ \t]*\r?\n(.*?)\n---|\+\+\+[ \t]*\r?\n(.*?)\n\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(\"|'|)(.{1,300}?)\1[ \t\r]*$", re.MULTILINE)
# Of Hugo, Jekyll and VitePress; in code they are text.
_TEMPLATE = re.compile(r"\{\{[<%][^{}]{0,1000}[%>]\}\}|\{%[^{}]{0,1000}%\}")
_INLINE_TAG = any_case(
    r"</?(?:a|abbr|b|code|del|em|font|i|img|ins|kbd|mark|samp|small|span|strong|sub|sup|u|var)(?=[\s/>])[^<>]{0,1000}>"
)
_BLOCK_TAG = any_case(
    r"\s{0,9}</?(?:br|center|dd|details|div|dl|dt|figure|figcaption|h[1-6]|hr|iframe|li|ol|p|picture|pre|source|summary|"
    r"table|tbody|td|th|thead|tr|ul|video)(?=[\s/>])[^<>]{0,1000}>\s{0,9}"
)
_ADDRESS = re.compile(r"<((?:https?://|mailto:)[^\s<>]{1,1000})>")
_NOTE_MARK = re.compile(r"\[\^[^\[\]\s]{1,50}\](?!:)")
_DEFINITION = re.compile(r"[ ]{0,3}\[(?!\^)[^\[\]]{1,200}\]:[ \t]+\S.*")
_NOTE = re.compile(r"[ ]{0,3}\[\^[^\[\]\s]{1,50}\]:[ \t]+")
# Of MkDocs, with an indented body; of Docusaurus and VitePress, between two lines; of GitHub, in a quote.
_ADMONITION = re.compile(
    r"([ ]*)(?:!!!|\?\?\?\+?|===)[ \t]+(?:[\w -]{1,60}(?=[ \t\"]|$))?[ \t]*(?:\"(.{0,200})\")?[ \t]*"
)
_COLONS = re.compile(r"[ ]{0,3}:::+[ \t]*(?:\{?\w[\w-]*\}?)?[ \t]*(?:\[(.{0,200})\]|([^\[\]{}]{0,200}))")
_GITHUB = re.compile(r"\A([ ]{0,3}>[ ]?)\[!\w{1,20}\][+-]?[ \t]*")
_HIDDEN = any_case(r"[ \t]*<(?:!--|(script|style)\b).*")
_COMMENT = re.compile(r"<!--.{0,1000}?-->")
_BODY = 4  # the indent of an admonition's body


def front_title(text: str) -> str:
    """The title that the front matter states, or ""."""
    front = _FRONT.match(text)
    found = _TITLE.search(front[1] or front[2] or "") if front else None
    return found[2].strip() if found else ""


def plain_lines(text: str) -> Iterator[str]:
    """The lines of plain Markdown: without front matter, comments and scripts; admonitions and tabs as text."""
    fence = hidden = ""  # how the open code, or the open comment or script, ends
    inner = -1  # the indent of the open admonition
    for line in _FRONT.sub("", text, count=1).splitlines():
        if inner >= 0 and line.strip():
            if line.startswith(" " * (inner + _BODY)):
                line = line[:inner] + line[inner + _BODY :]
            else:
                inner = -1
        if fence:
            fence = "" if closes(line, fence) else fence
            yield line
        elif hidden:
            hidden = "" if hidden in line.lower() else hidden
        elif opened := FENCE.fullmatch(line):
            fence = opened[1]
            yield line
        elif found := _HIDDEN.fullmatch(line):
            end = f"</{found[1].lower()}" if found[1] else "-->"
            hidden = "" if end in line.lower() else end
        elif (found := _ADMONITION.fullmatch(line)) and line.strip("= \t"):
            inner = len(found[1])
            yield from ("", found[1] + (found[2] or ""), "")
        elif found := _COLONS.fullmatch(line):
            yield from ("", (found[1] or found[2] or "").strip(), "")
        elif note := _NOTE.match(line):
            yield from ("", line[note.end() :])
        elif not (_DEFINITION.fullmatch(line) or ("{" in line and not _TEMPLATE.sub("", line).strip())):
            yield _GITHUB.sub(r"\1", line, count=1)


def closes(line: str, fence: str) -> bool:
    """Whether a line ends the code that ``fence`` began."""
    return line.strip().startswith(fence) and not line.strip().strip(fence[0])


def without_templates(text: str) -> str:
    """A text outside of code without templates, tags and the marks of footnotes."""
    if "{" in text:
        text = _TEMPLATE.sub("", text)
    if "<" in text:
        text = _ADDRESS.sub(r"\1", _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", _COMMENT.sub("", text))))
    if "[^" in text:
        text = _NOTE_MARK.sub("", text)
    return decode_entities(text) if "&" in text else text
