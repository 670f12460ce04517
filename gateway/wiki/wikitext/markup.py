"""The second pass: drop templates and replace links by their text. Both may span lines."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.wiki.wikitext.infobox import infobox_rows, is_infobox, shown_text

_BRACES = re.compile(r"\{{2,}|\}{2,}")
_BRACKETS = re.compile(r"\[\[|\]\]")

# Links nest only in image captions. The bound keeps the copying of inner text linear.
_MAX_LINK_DEPTH = 8

_LONGEST_SHOWN = 4000  # characters of a template that shows text

_NOT_SHOWN = any_case(r"(?:file|image|media|category)\s{0,8}:")
_LANGUAGE = re.compile(r"(?:ar|cs|da|de|el|en|eo|es|fi|fr|he|hu|it|ja|jbo|ko|nl|no|pl|pt|ru|sv|tr|uk|zh):\S")
_NAMESPACE = re.compile(r"^[\w ]{1,40}:")
_IN_PARENTHESES = re.compile(r"\s{0,8}\([^()]{0,200}\)$")


def drop_templates(text: str) -> str:
    """Drop ``{{templates}}`` and ``{{{parameters}}}``, also nested ones, but keep an infobox as rows, and shown text.

    Unmatched braces stay. Braces pair as in MediaWiki's preprocessor: a closing run takes three of the innermost
    opening run when both have three, else two. ``{{!}}`` and ``{{=}}`` become the characters that they name.
    """
    text = text.replace("{{!}}", "|").replace("{{=}}", "=")
    spans: list[tuple[int, int]] = []  # of complete templates, in the order of their ends
    openings: list[list[int]] = []  # position and length of open runs
    for run in _BRACES.finditer(text):
        if run[0][0] == "{":
            openings.append([run.start(), len(run[0])])
            continue
        position, left = run.start(), len(run[0])
        while left >= 2 and openings:
            top = openings[-1]
            taken = 3 if min(top[1], left) >= 3 else 2
            top[1] -= taken
            position, left = position + taken, left - taken
            spans.append((top[0] + top[1], position))
            if top[1] < 2:
                openings.pop()
    return _without(text, spans)


def resolve_links(text: str) -> str:
    """Replace every ``[[link]]`` by its visible text; files and categories have none."""
    frames = [_Frame()]  # the page, then the open links
    position = 0
    for match in _BRACKETS.finditer(text):
        _append(frames, text[position : match.start()])
        position = match.end()
        if match[0] == "[[" and len(frames) <= _MAX_LINK_DEPTH:
            frames.append(_Frame())
        elif match[0] == "]]" and len(frames) > 1:
            link = frames.pop()
            _append(frames, _link_text("".join(link.parts)))
        else:
            _append(frames, match[0])
    _append(frames, text[position:])
    while len(frames) > 1:
        _give_up(frames)
    return "".join(frames[0].parts)


class _Frame:
    """Text since ``[[``; ``piped`` once the target has ended."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.piped = False


def _append(frames: list[_Frame], piece: str) -> None:
    frames[-1].parts.append(piece)
    while len(frames) > 1 and not frames[-1].piped:
        target, bar, _ = piece.partition("|")
        if "\n" in target:  # titles have no line breaks: these brackets are text, often of a program
            piece = _give_up(frames)
        else:
            frames[-1].piped = bool(bar)
            return


def _give_up(frames: list[_Frame]) -> str:
    """Turn the innermost open link into text of what surrounds it, and return that text."""
    piece = "[[" + "".join(frames.pop().parts)
    frames[-1].parts.append(piece)
    return piece


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text outside the spans, with infoboxes as rows and shown text.

    Each span contains or follows those that end before it.
    """
    outer: list[tuple[int, int]] = []
    for span in spans:
        while outer and outer[-1][0] >= span[0]:
            outer.pop()
        outer.append(span)
    out, position = [], 0
    for start, end in outer:
        out.append(text[position:start])
        if is_infobox(content := text[start + 2 : end - 2]):
            out.append(infobox_rows(content))
        elif len(content) <= _LONGEST_SHOWN:
            out.append(shown_text(content, _stands_alone(text, start, end)))
        position = end
    out.append(text[position:])
    return "".join(out)


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return before in ("", "\n") and after in ("", "\n")


def _link_text(content: str) -> str:
    target, piped, label = content.partition("|")
    target = target.strip()
    if _NOT_SHOWN.match(target):
        return ""
    if not target or any(character in target for character in "\n[]"):
        return f"[[{content}]]"
    if not piped:
        return "" if _LANGUAGE.match(target) else target.lstrip(":#")
    if label.strip():
        return label
    # The pipe trick: [[Namespace:Name (kind)|]] shows as Name.
    return _IN_PARENTHESES.sub("", _NAMESPACE.sub("", target.lstrip(":")))
