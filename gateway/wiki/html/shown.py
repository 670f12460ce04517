"""The visible elements of a wiki page, without notices and navigation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.base.patterns import any_case
from gateway.wiki.html.tokens import VOID, Tag, tokens

# Pictures, forms, controls, scripts.
_HIDDEN_TAGS = frozenset(
    {
        "audio", "button", "canvas", "figure", "form", "head", "iframe", "img", "input", "link", "map", "meta",
        "nav", "noscript", "object", "script", "select", "style", "svg", "template", "textarea", "title", "video",
    }
)  # fmt: skip
# Classes that templates and MediaWiki itself put on everything around an article's text; the last line has those of
# DocBook, Sphinx and Texinfo.
_HIDDEN_CLASSES = frozenset(
    """
    ambox authority-control boilerplate catlinks cmbox dablink dmbox fmbox gallery gallerybox hatnote imbox infobox
    inline-template linenos lineno magnify mbox-small messagebox metadata mw-cite-backlink mw-editsection
    mw-empty-elt mw-ext-cite-error mw-headline-number mw-indicators mw-jump-link mw-kartographer-map
    mw-references-wrap navbar navbox navbox-styles noprint notice ombox portal portalbox printfooter reference
    references reflist rellink sidebar side-box sistersitebox sister-box stub succession-box template-fact thumb
    tmbox toc vertical-navbox
    breadcrumb breadcrumbs nav-panel navfooter navheader sphinxsidebar toctree-wrapper longdesc-link
    brackets fn-backref fn-bracket list-of-examples list-of-figures list-of-tables
    contents shortcontents genindextable indextable indexdiv index-cp index-fn index-ky index-pg index-tp index-vr
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
# Of HTML5: the way to other pages, the copyright of all pages.
_HIDDEN_ROLES = frozenset({"contentinfo", "doc-backlink", "navigation", "search"})
_PERMALINKS = frozenset(
    {"headerlink", "permalink", "header-anchor", "hash-link", "anchor-link", "anchorjs-link"}
)
# The number of a note, in the text and before the note; "[1]" would be taken for a citation.
_NOTE_MARKS = frozenset({"footnote", "footnote-reference", "para"})
_HIDDEN_STYLE = any_case(r"display\s{0,8}:\s{0,8}none")
_MATH_WRAPPER = re.compile(r"\{\\(?:display|text|script)style\s?(.*)\}", re.DOTALL)
# The end tag of an element outside a table does not end the table's cells.
_BARRIERS = frozenset({"table", "caption", "td", "th"})


def shown(html: str) -> Iterator[str | tuple[Tag, bool]]:
    """Texts, and elements with whether they open; every element that opens also closes.

    Never raises; linear in the length.
    """
    elements = _Elements()
    for token in tokens(html):
        if isinstance(token, Tag):
            yield from elements.close(token.name) if token.closing else elements.open(token)
        elif not elements.hidden:
            yield token
    yield from elements.close_from(0)


def is_infobox(element: Tag) -> bool:
    """Whether it is a table of facts about the page's subject."""
    return element.name == "table" and "infobox" in element.classes


def _is_note_mark(element: Tag) -> bool:
    return element.name in ("a", "sup") and not _NOTE_MARKS.isdisjoint(element.classes)


def math_source(text: str) -> str:
    """TeX without the dollars, braces and style that MediaWiki's Math extension adds."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "$":
        text = text[1:-1].strip()
    wrapped = _MATH_WRAPPER.fullmatch(text)
    return wrapped[1].strip() if wrapped else text


class _Elements:
    """The stack of open elements. Nothing inside an element that is hidden or replaced by a text is reported."""

    def __init__(self) -> None:
        self._open: list[Tag] = []
        self._places: dict[str, list[int]] = {}  # indices in _open, by name
        self._barriers: list[int] = []
        self._hidden_at: int | None = None  # index of the element that hides its content
        self._has_formula = False  # the open mwe-math-element has been replaced by its TeX

    @property
    def hidden(self) -> bool:
        return self._hidden_at is not None

    def open(self, tag: Tag) -> Iterator[str | tuple[Tag, bool]]:
        if not self.hidden:
            replacement = self._replacement(tag)
            if replacement is None:
                yield tag, True
                if tag.name in VOID:
                    yield tag, False
            else:
                if replacement:
                    yield replacement
                if tag.name not in VOID:
                    self._hidden_at = len(self._open)
        if tag.name not in VOID:
            self._push(tag)

    def close(self, name: str) -> Iterator[tuple[Tag, bool]]:
        places = self._places.get(name)
        barrier = self._barriers[-1] if self._barriers else -1
        if places and (places[-1] >= barrier or name in _BARRIERS):
            yield from self.close_from(places[-1])

    def _push(self, element: Tag) -> None:
        self._places.setdefault(element.name, []).append(len(self._open))
        if element.name in _BARRIERS:
            self._barriers.append(len(self._open))
        self._open.append(element)

    def close_from(self, index: int) -> Iterator[tuple[Tag, bool]]:
        """Close the open elements from this index on, the innermost first."""
        while len(self._open) > index:
            element = self._open.pop()
            self._places[element.name].pop()
            if element.name in _BARRIERS:
                self._barriers.pop()
            if self._hidden_at is None:
                yield element, False
            elif self._hidden_at == len(self._open):
                self._hidden_at = None

    def _replacement(self, element: Tag) -> str | None:
        """The text that replaces the element, ``""`` for a hidden one, None for an ordinary one."""
        name, attributes, classes = element.name, element.attributes, element.classes
        if name == "math" and "alttext" in attributes:
            self._has_formula = True
            return math_source(attributes["alttext"])
        if any(each.startswith("mwe-math-") for each in classes):
            if "mwe-math-element" in classes:
                self._has_formula = False
            if name != "img":
                return None
            return "" if self._has_formula else math_source(attributes.get("alt", ""))
        if name == "a":
            if "autonumber" in classes:  # an external link shown as [1]
                return attributes.get("href")
            missing_template = "new" in classes and attributes.get("title", "").startswith("Template:")
            is_mark = not _PERMALINKS.isdisjoint(classes) or _is_note_mark(element)
            return "" if missing_template or is_mark or attributes.get("role") in _HIDDEN_ROLES else None
        is_hidden = (
            name in _HIDDEN_TAGS
            or (not _HIDDEN_CLASSES.isdisjoint(classes) and not is_infobox(element))
            or attributes.get("role") in _HIDDEN_ROLES
            or _is_note_mark(element)
            or attributes.get("id") == "toc"
            or _HIDDEN_STYLE.search(attributes.get("style", ""))
        )
        return "" if is_hidden else None
