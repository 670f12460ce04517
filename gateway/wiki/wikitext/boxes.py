"""Templates that show the text they are given: a box with a note or a warning, and a key or code within a sentence."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.wiki.wikitext.infobox import inner_values, parameters

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
