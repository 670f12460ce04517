"""Markup inside a line: quotes for bold and italics, HTML tags, external links, entities."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.wiki.scripts import SCRIPTS, SPACES, show_scripts
from gateway.wiki.wikitext.protect import ProtectedText, decode_entities, restore

# An external link and its optional text; bounded because the bracket may never close.
_EXTERNAL = any_case(
    r"\[((?:https?:|ftps?:|ircs?:|mailto:|news:)?(?://|(?<=mailto:))[^\s\[\]<>\"]{1,2000})"
    r"(?:[ \t]{1,8}([^\[\]\n]{0,1000}))?\]"
)
_QUOTES = re.compile(r"'{2,}")
_SHOWN_QUOTES = {2: "", 3: "", 4: "'", 5: ""}
_MAGIC = re.compile(
    r"__(?:NO|FORCE)?TOC__|__NOEDITSECTION__|__NEWSECTIONLINK__|__(?:NO)?INDEX__|__HIDDENCAT__|__NOGALLERY__"
    r"|__NOTITLECONVERT__|__NOCONTENTCONVERT__|__DISAMBIG__|__STATICREDIRECT__|__EXPECTUNUSEDCATEGORY__"
)
_LINE_BREAK = any_case(
    r"[ \t]{0,8}<(?:br|hr)\s{0,8}/?>[ \t]{0,8}\n?|</(?:p|div|tr|ul|ol|dl|blockquote)\s{0,8}>"
)
_ITEM = any_case(r"<li(?:\s[^<>]{0,500})?>")
_CELL = any_case(r"</t[dh]\s{0,8}>\s{0,80}<t[dh](?:\s[^<>]{0,500})?>")
_SCRIPT = any_case(r"<(/?)(sup|sub)(?:\s[^<>]{0,500})?>")
# Only the tags MediaWiki knows: anything else in angle brackets is text, and often a program.
_TAG = any_case(
    r"</?(?:abbr|bdi|bdo|big|blockquote|b|caption|center|cite|code|data|dd|del|dfn|div|dl|dt|em|font|h[1-6]|ins|i|kbd"
    r"|li|mark|noinclude|nowiki|ol|onlyinclude|poem|pre|p|q|ruby|rb|rp|rt|samp|section|small|span|strike|strong"
    r"|sub|sup|s|table|tbody|td|thead|th|time|tr|tt|ul|u|var|wbr)(?:[\s/][^<>]{0,1000})?>"
)


def plain_text(wikitext: str, protected: list[ProtectedText]) -> str:
    """One line or paragraph as plain text, with what :func:`protect` set aside."""
    return restore(plain(wikitext), protected)


def plain(text: str, *, keep_spaces: bool = False) -> str:
    """One line or paragraph without markup; ``<br>`` becomes a newline, and runs of spaces one space.

    Linear in the length of the text.
    """
    if "[" in text:
        text = _EXTERNAL.sub(lambda match: (match[2] or "").strip() or match[1], text)
    if "<" in text:
        text = _tags(text)
    if "__" in text:
        text = _MAGIC.sub("", text)
    if "''" in text:
        text = _QUOTES.sub(lambda match: _SHOWN_QUOTES.get(len(match[0]), "'" * (len(match[0]) - 5)), text)
    text = show_scripts(decode_entities(text))
    return text if keep_spaces else SPACES.sub(" ", text).strip()


def _tags(text: str) -> str:
    text = _LINE_BREAK.sub("\n", text)
    text = _ITEM.sub("\n- ", text)
    text = _CELL.sub(" | ", text)
    text = _SCRIPT.sub(lambda match: SCRIPTS[match[2].lower()][bool(match[1])], text)
    return _TAG.sub("", text)
