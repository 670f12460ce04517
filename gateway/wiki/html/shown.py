"""What a reader of a wiki page is shown: its elements, each one closed, without notices, boxes and navigation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gateway.wiki.html.tokens import VOID, Tag, tokens

# Not text: pictures, forms, controls, and whatever belongs to a program.
_HIDDEN_TAGS = frozenset(
    {
        "audio", "button", "canvas", "figure", "form", "head", "iframe", "img", "input", "link", "map", "meta",
        "nav", "noscript", "object", "script", "select", "style", "svg", "template", "textarea", "title", "video",
    }
)  # fmt: skip
# Classes of what templates and MediaWiki itself put around an article's text.
_HIDDEN_CLASSES = frozenset(
    """
    ambox authority-control boilerplate catlinks cmbox dablink dmbox fmbox gallery gallerybox hatnote imbox infobox
    inline-template linenos lineno magnify mbox-small messagebox metadata mw-cite-backlink mw-editsection
    mw-empty-elt mw-ext-cite-error mw-headline-number mw-indicators mw-jump-link mw-kartographer-map
    mw-references-wrap navbar navbox navbox-styles noprint notice ombox portal portalbox printfooter reference
    references reflist rellink sidebar side-box sistersitebox sister-box stub succession-box template-fact thumb
    tmbox toc vertical-navbox
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
_HIDDEN_STYLE = re.compile(r"display\s{0,8}:\s{0,8}none", re.IGNORECASE)
_MATH_WRAPPER = re.compile(r"\{\\(?:display|text|script)style\s?(.*)\}", re.DOTALL)
# The end tag of something outside a table does not end the table's cells.
_BARRIERS = frozenset({"table", "caption", "td", "th"})


class Open(NamedTuple):
    """An element begins."""

    name: str
    attributes: dict[str, str] = {}
    classes: list[str] = []  # in lower case


class Close(NamedTuple):
    """The element that was opened last ends."""

    name: str


def shown(html: str) -> Iterator[Open | Close | str]:
    """Elements and texts in their order; every Open has its Close. Never raises; linear in the length."""
    elements = _Elements()
    for token in tokens(html):
        if isinstance(token, Tag):
            yield from elements.close(token.name) if token.closing else elements.open(token)
        elif not elements.hidden:
            yield token
    yield from elements.close_all()


def math_source(text: str) -> str:
    """TeX without the dollars, braces and style that MediaWiki's Math extension puts around it."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "$":
        text = text[1:-1].strip()
    wrapped = _MATH_WRAPPER.fullmatch(text)
    return wrapped[1].strip() if wrapped else text


class _Elements:
    """The open elements. Where an element is hidden or stands for a text, nothing inside it is told."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._places: dict[str, list[int]] = {}  # indices in _open, by name
        self._barriers: list[int] = []
        self._hidden_at: int | None = None  # index of the element that hides what is inside it
        self._formula_told = False

    @property
    def hidden(self) -> bool:
        return self._hidden_at is not None

    def open(self, tag: Tag) -> Iterator[Open | Close | str]:
        if self.hidden:
            if tag.name not in VOID:
                self._push(tag.name)
            return
        element = _element(tag)
        instead = self._instead(element)
        if instead is not None:
            if instead:
                yield instead
            if tag.name not in VOID:
                self._hidden_at = len(self._open)
                self._push(tag.name)
            return
        yield element
        if tag.name in VOID:
            yield Close(tag.name)
        else:
            self._push(tag.name)

    def close(self, name: str) -> Iterator[Close]:
        places = self._places.get(name)
        barrier = self._barriers[-1] if self._barriers else -1
        if not places or (places[-1] < barrier and name not in _BARRIERS):
            return
        yield from self._pop_to(places[-1])

    def close_all(self) -> Iterator[Close]:
        yield from self._pop_to(0)

    def _push(self, name: str) -> None:
        self._places.setdefault(name, []).append(len(self._open))
        if name in _BARRIERS:
            self._barriers.append(len(self._open))
        self._open.append(name)

    def _pop_to(self, index: int) -> Iterator[Close]:
        while len(self._open) > index:
            name = self._open.pop()
            self._places[name].pop()
            if name in _BARRIERS:
                self._barriers.pop()
            if self._hidden_at is None:
                yield Close(name)
            elif self._hidden_at == len(self._open):
                self._hidden_at = None

    def _instead(self, element: Open) -> str | None:
        """The text that stands for the element, ``""`` for a hidden one, None for one that is told as it is."""
        name, attributes, classes = element.name, element.attributes, element.classes
        if name == "math" and "alttext" in attributes:
            self._formula_told = True
            return math_source(attributes["alttext"])
        if any(each.startswith("mwe-math-") for each in classes):
            if "mwe-math-element" in classes:
                self._formula_told = False
            if name != "img":
                return None
            return "" if self._formula_told else math_source(attributes.get("alt", ""))
        if name == "a":
            return _instead_of_link(attributes, classes)
        return "" if name in _HIDDEN_TAGS or _is_hidden(attributes, classes) else None


def _element(tag: Tag) -> Open:
    if not tag.raw:
        return Open(tag.name)
    attributes = tag.attributes()
    return Open(tag.name, attributes, attributes.get("class", "").lower().split())


def _is_hidden(attributes: dict[str, str], classes: list[str]) -> bool:
    return (
        not _HIDDEN_CLASSES.isdisjoint(classes)
        or attributes.get("role") == "navigation"
        or attributes.get("id") == "toc"
        or _HIDDEN_STYLE.search(attributes.get("style", "")) is not None
    )


def _instead_of_link(attributes: dict[str, str], classes: list[str]) -> str | None:
    if "autonumber" in classes:  # shown as [1]
        return attributes.get("href")
    if "new" in classes and attributes.get("title", "").startswith(
        "Template:"
    ):  # a template that does not exist
        return ""
    return None
