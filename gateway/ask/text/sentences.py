"""Splits prose and streamed answers into sentences with their citation markers."""

from __future__ import annotations

import re

from msgspec import Struct

from gateway.base.patterns import any_case

MARKER = re.compile(r"\[[ \t]*[0-9]+(?:[ \t]*,[ \t]*[0-9]+)*[ \t]*\]")

# Final punctuation, closing quotes, then the sentence's own markers, before a space or the end.
# The look-behind and the possessive quantifier try a run of punctuation once, so its cost is linear.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)»*_`]*(?:[ \t]*" + MARKER.pattern + r")*(?=\s|\Z)")
_UNFINISHED_MARKER = re.compile(r"[ \t]*(?:\[[ \t0-9,]*)?\Z")
_ABBREVIATION = any_case(
    r"(?:^|[\s(\"'])(?:e\.g|i\.e|cf|vs|approx|ca|esp|orig|poss|prob|usu|abbrev|Dr|Mr|Mrs|Ms|St|al|pp|Ph\.D)\Z"
)
# "C. Pressey", "by C. Pressey", "John C. Reynolds" or "P.P. Chen", but not "written in C."
_INITIAL = re.compile(r"(?:^|\b(?:by|and|of|with|after)[ \t]|&[ \t]|[A-Z][\w.'-]*[ \t]|[A-Z]\.)[A-Z]\Z")
_ITEM_NUMBER = re.compile(r"[0-9]{1,3}")  # "1. First" is one sentence
_OPENS_QUOTE = re.compile(r"(?:^|[\s(])[\"'“‘`]\Z")  # before a sign that is quoted: press '.' or 's'
# "(see “What is it?”) that comes with it" is one sentence, and so is "printers etc. are found".
_GOES_ON = re.compile(r"[ \t]+[a-z]")
_CLOSED = re.compile(r"[.?!…]+[\"'”’)]+")
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_NOT_SPACE = re.compile(r"\S")
FENCE = "```"
_CONTEXT = 64  # characters before a full stop that decide whether it ends an abbreviation


class Unit(Struct, frozen=True):
    """A sentence, or one line of fenced code. ``lead`` is the white space before ``body``."""

    lead: str
    body: str
    code: bool = False


class Splitter:
    """Cuts streamed text into units, independently of the pieces in which it arrives.

    A sentence ends at final punctuation and the markers after it, or at the end of its line; inside a fence of
    three backticks every line is a unit. A unit is emitted once no further text can belong to it.
    """

    def __init__(self) -> None:
        self.pending = ""  # the text of the incomplete unit
        self._in_fence = False

    def feed(self, text: str) -> list[Unit]:
        """Add text and return the units that are now complete."""
        self.pending += text
        return self._take(final=False)

    def end(self) -> list[Unit]:
        """Return the remaining units. White space after the last one is dropped."""
        units = self._take(final=True)
        self.pending = ""
        return units

    def _take(self, final: bool) -> list[Unit]:
        text, at = self.pending, 0
        units: list[Unit] = []
        while found := _NOT_SPACE.search(text, at):
            start = found.start()
            is_fence = text.startswith(FENCE, start)
            end = _unit_end(text, start, self._in_fence or is_fence, final)
            if end is None:
                break
            units.append(Unit(text[at:start], text[start:end], self._in_fence or is_fence))
            self._in_fence ^= is_fence
            at = end
        self.pending = text[at:]
        return units


def split_units(text: str) -> list[Unit]:
    splitter = Splitter()
    return splitter.feed(text) + splitter.end()


def sentences(text: str) -> list[str]:
    """Split a paragraph into sentences; line breaks count as spaces."""
    return [unit.body for unit in split_units(" ".join(text.split()))]


def _unit_end(text: str, start: int, line_only: bool, final: bool) -> int | None:
    """Return the end index of the unit that begins at ``start``, or None while it may continue."""
    newline = text.find("\n", start)
    limit = len(text) if newline < 0 else newline
    if not line_only:
        for match in _END.finditer(text, start, limit):
            if _is_no_end(text, start, match) or _goes_on(text, match):
                continue
            if final or newline >= 0 or not _UNFINISHED_MARKER.match(text, match.end()):
                return match.end()
            return None
    if newline >= 0:
        return start + len(text[start:newline].rstrip())
    return start + len(text[start:].rstrip()) if final else None


def _goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether the sentence goes on in lower case behind a quotation, or behind "etc."."""
    if _GOES_ON.match(text, match.end()) is None:
        return False
    return (
        _CLOSED.fullmatch(match[0]) is not None
        or text[max(0, match.start() - 3) : match.start()].casefold() == "etc"
    )


def ends_in_initial(text: str) -> bool:
    """Whether a text ends inside a name: "It was found by W.H."."""
    return text.endswith(".") and _INITIAL.search(text[-_CONTEXT:].rstrip(".")) is not None


def _is_no_end(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether the punctuation belongs to an abbreviation or a number, or is itself what a sentence quotes."""
    before = text[max(start, match.start() - _CONTEXT) : match.start()]
    if _OPENS_QUOTE.search(before):
        return True
    if match[0][:1] != "." or match[0][1:2] == ".":
        return False
    return bool(_ABBREVIATION.search(before) or _INITIAL.search(before) or _ITEM_NUMBER.fullmatch(before))


def take_markers(body: str) -> tuple[str, list[int]]:
    """Split off the markers and return their numbers; markers inside inline code stay."""
    numbers: list[int] = []
    while matches := _markers(body):
        pieces: list[str] = []
        at = 0
        for match in matches:
            pieces.append(body[at : match.start()].rstrip())
            at = match.end()
            numbers += [int(digits[:9]) for digits in re.findall("[0-9]+", match[0])]
        # Removing a marker can form another one: [[1]2].
        body = "".join([*pieces, body[at:]])
    return body.strip(), list(dict.fromkeys(numbers))


def _markers(body: str) -> list[re.Match[str]]:
    code = [match.span() for match in _INLINE_CODE.finditer(body)]
    found = MARKER.finditer(body)
    return [match for match in found if not any(start < match.start() < end for start, end in code)]
