"""Templates that are shown: infoboxes as rows, ``key | value``; boxes with a note, keys and code as their text."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case

# Begins a line that is a row of an infobox; a noncharacter.
ROW = "\ufdd3"

_NAME = any_case(
    r"\s*(?:[\w ]{0,40}\b)?(?:(?:info|tax[ao]|species|chem|drug|geo|star)box|ficha de|info/|(?:hộp )?thông tin\b)"
)
# Each language has its own names for a box, so it is recognised by its form: only named values, one per line.
_LEAST_VALUES = 3
_NAMED_LINE = re.compile(r"\n[ \t]{0,40}\|[ \t]{0,40}[^\s|={}\[\]][^|={}\[\]\n]{0,60}=")
_BARE_LINE = re.compile(r"\n[ \t]{0,40}\|[^=\n]*(?=\n|\Z)")
_NO_BOX = any_case(
    r"\A\s*(?:cite\b|citation|quote|chú thích|navbox|sidebar)|\n[ \t]{0,40}\|[ \t]{0,40}(?:list|group)1[ \t]*="
)
# Values that say how the box looks, by their name or form.
_LAYOUT = any_case(
    r"(?:.* )?(?:image|logo|picture|photo|caption|alt|upright)\d*(?: .*)?"
    r"|(?:body|title|above|header|label|data|row|below) ?style\d*"
)
_LAYOUT_VALUE = any_case(r".*\.(?:png|svg|jpe?g|gif|webp|ogg|ogv|webm)|(?:x?\d+)+px")
_PIECE = re.compile(r"\{\{|\}\}|\[\[|\]\]|\|")
_BRACES = re.compile(r"\{\{|\}\}")
_MOST_NESTED = 8  # bounds how often text is copied
_BULLET = re.compile(r"^[*#:;]+[ \t]*")


def is_infobox(content: str) -> bool:
    """Whether a template with this content, without its braces, is an infobox."""
    name = content.partition("|")[0]
    if _NAME.match(name):
        return True
    if not name.endswith("\n") or len(_NAMED_LINE.findall(content)) < _LEAST_VALUES:
        return False
    return not (_BARE_LINE.search(content) or _NO_BOX.search(content))


def infobox_rows(content: str) -> str:
    """The rows of an infobox as lines of wikitext that begin with :data:`ROW`. Linear in the content's length."""
    rows = []
    for parameter in parameters(content)[1:]:
        key, equals, value = parameter.partition("=")
        key = " ".join(key.replace("_", " ").split())
        lines = [_BULLET.sub("", line.strip()) for line in inner_values(value).split("\n")]
        text = ", ".join(filter(None, lines))
        if equals and key and text and not _LAYOUT.fullmatch(key) and not _LAYOUT_VALUE.fullmatch(text):
            rows.append(f"{ROW}{key} | {text}")
    return "\n" + "\n".join(rows) + "\n" if rows else ""


def parameters(content: str) -> list[str]:
    """Split at the bars that are in no inner template or link."""
    parts, depth, start = [], 0, 0
    for match in _PIECE.finditer(content):
        if match[0] == "|":
            if not depth:
                parts.append(content[start : match.start()])
                start = match.end()
        else:
            depth = max(0, depth + (1 if match[0] in ("{{", "[[") else -1))
    return [*parts, content[start:]]


def inner_values(value: str) -> str:
    """Replace templates inside a value by what they were given without a name: a date, a list, an address."""
    frames: list[list[str]] = [[]]
    at = deeper = 0
    for match in _BRACES.finditer(value):
        frames[-1].append(value[at : match.start()])
        at = match.end()
        if match[0] == "{{" and len(frames) > _MOST_NESTED:
            deeper += 1
        elif match[0] == "{{":
            frames.append([])
        elif deeper:
            deeper -= 1
        elif len(frames) > 1:
            given = [part.strip() for part in parameters("".join(frames.pop()))[1:]]
            frames[-1].append(
                ", ".join(part for part in given if part and "=" not in part.partition("[[")[0])
            )
    return "".join(["".join(frame) for frame in frames] + [value[at:]])


# Boxes about the page and not its subject, and lines that only lead to other pages.
_ABOUT_PAGE = any_case(
    r"(?:.*\b)?(?:stub|clean ?up|delet\w*|merge\w*|orphan\w*|updat\w*|expan\w*|outdated|draft|refimprove|unreferenced|"
    r"cit\w+|ref\w*|main\w*|see\w*|about|for|distinguish|hatnote|redirects?\w*|short description|displaytitle|navbox|"
    r"categor\w*|cat|copyright\w*|attribution|translat\w*|disambig\w*|efn|tooltip|talk\w*|user\w*|todo)\b.*",
    re.S,
)
_LONGEST_NAME = 60
_PARAMETER = re.compile(r"\s*[\w -]{1,40}")
_TEXT = any_case(r"(?:1|text|content|body|message|note|warning|info)")
_SENTENCE = re.compile(r"(?:\S+\s+){3}.*[.!?:)][\"'”’\]]*\Z", re.S)
# Templates of Wikipedia and of many others, with what stands between their values.
_INLINE = {
    **dict.fromkeys(("key", "keys", "kbd", "key press", "keypress", "button"), "+"),
    **dict.fromkeys(("menu", "path", "navigation"), " → "),
    **dict.fromkeys(("nowrap", "nobr", "code", "mono", "tt", "samp", "var", "strong", "big", "small"), " "),
}


def shown_text(content: str, alone: bool) -> str:
    """The text that a template with this content (without braces) shows; ``alone``: no other text is on its lines."""
    name, *values = parameters(content)
    name = " ".join(name.replace("_", " ").split()).casefold()
    between = _INLINE.get(name)
    given = [each.strip() for each in map(_unnamed, map(inner_values, values)) if each.strip()]
    if between is not None:
        return between.join(given)
    if (
        not alone
        or not given
        or name[:1] in ("#", "{")
        or len(name) > _LONGEST_NAME
        or _ABOUT_PAGE.fullmatch(name)
    ):
        return ""
    text = max(given, key=len)
    return f"\n{text}\n" if _SENTENCE.match(text) else ""


def _unnamed(value: str) -> str:
    """A value without a name, or with one that means text; else nothing."""
    name, equals, named = value.partition("=")
    if not equals or not _PARAMETER.fullmatch(name):
        return value
    return named if _TEXT.fullmatch(name.strip()) else ""
