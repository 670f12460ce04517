"""Redaction of secrets (keys, passwords, private keys) from text that is stored or logged.

``gateway/base/redact.toml`` defines the secrets. The time is linear in any text, and close to that of ``bytes.find``
for ordinary text, because patterns are tried only at the occurrences of their words.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct

from gateway.base.redaction.shaped import SHAPED, shaped_spans
from gateway.base.redaction.spoken import CODE, SpokenSecretFinder, SpokenSecretWords
from gateway.base.stems import old_tones

MARK = "[redacted]"
S = TypeVar("S", bound=Struct)

# Longer texts (characters) are searched in a thread; shorter ones block the event loop for less than 2 ms.
_LONG_TEXT = 24 * 1024
# A shorter run of letters and digits is no token.
_LEAST_DRAWN = 12


class _Secret(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    near: list[str]
    pattern: str
    until: str | None = None
    replace: str = MARK
    check: Literal["luhn", "random", "iban"] | None = None


class _Random(Struct, frozen=True, forbid_unknown_fields=True):
    least: int
    pattern: str
    least_bits: float  # of entropy per character


class Removed(Struct, frozen=True):
    """A secret that was taken out of a text: the name of its rule, and its value."""

    kind: str
    value: str


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    secret: list[_Secret]
    spoken: SpokenSecretWords
    random: _Random


def _is_card(text: str) -> bool:
    """Luhn's checksum, over 13 to 19 digits."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [digit if index % 2 == 0 else digit * 2 for index, digit in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _is_token(text: str) -> bool:
    """Whether it has at least twelve letters and digits outside lower-case words, and they look random."""
    drawn = "".join(run for run in re.findall(r"[A-Za-z0-9]+", text) if not (run.isalpha() and run.islower()))
    digits = sum(map(str.isdigit, drawn))
    mixed = drawn.lower() != drawn != drawn.upper()
    return len(drawn) >= _LEAST_DRAWN and 0 < digits < len(drawn) and (mixed or digits * 6 >= len(drawn))


def _is_account(text: str) -> bool:
    """The check digits of an IBAN (ISO 13616): with each letter as its number, a remainder of 1 by 97."""
    plain = re.sub("[ -]", "", text)
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


_CHECKS: dict[str, Callable[[str], bool]] = {"luhn": _is_card, "random": _is_token, "iban": _is_account}


class _Rule:
    """A kind of secret, with its compiled patterns."""

    def __init__(self, secret: _Secret) -> None:
        self.name = secret.name
        self.pattern = re.compile(secret.pattern)
        self.replace = secret.replace
        self._until = None if secret.until is None else re.compile(secret.until)
        self._check = None if secret.check is None else _CHECKS[secret.check]
        self._near = [word.encode() for word in secret.near]
        self._any_case = bool(self.pattern.flags & re.IGNORECASE)

    def spans(self, text: str, letters: bytes, lower: bytes) -> Iterator[tuple[int, int, str]]:
        """Start, end and replacement of each occurrence, in order; both texts are of :func:`_letters`."""
        letters = lower if self._any_case else letters
        places = [(at, word) for word in self._near if (at := letters.find(word)) >= 0]
        heapq.heapify(places)
        end = 0
        while places:
            at, word = places[0]
            if at >= end and (match := self.pattern.match(text, at)) and self._counts(match):
                end = self._end(text, match)
                yield at, end, match.expand(self.replace)
            following = letters.find(word, max(at + 1, end))
            if following >= 0:
                heapq.heapreplace(places, (following, word))
            else:
                heapq.heappop(places)

    def _counts(self, match: re.Match[str]) -> bool:
        """Whether what the pattern found passes the rule's check; groups before the secret do not count."""
        if self._check is None:
            return True
        begin = match.end(1) if match.re.groups else match.start()
        return self._check(match.string[begin : match.end()])

    def _end(self, text: str, match: re.Match[str]) -> int:
        if self._until is None:
            return match.end()
        last = self._until.search(text, match.end())
        return last.end() if last else len(text)


_DOCUMENT = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=_Document)
_RULES = [_Rule(each) for each in _DOCUMENT.secret]
_SPOKEN = SpokenSecretFinder(_DOCUMENT.spoken)
_RANDOM_NAME = "random letters and digits"
_RANDOM = re.compile(_DOCUMENT.random.pattern)
_IN_RUN = bytes(
    ord("x") if chr(code).isascii() and (chr(code).isalnum() or code == ord("+")) else ord(" ")
    for code in range(256)
)
_RUN = b"x" * _DOCUMENT.random.least


def redact(text: str) -> tuple[str, int]:
    """Replace all recognized secrets by ``[redacted]``; return the text and their number."""
    clean, removed = take_secrets(text)
    return clean, len(removed)


def take_secrets(text: str, asked: str = "") -> tuple[str, list[Removed]]:
    """:func:`redact`, with the secrets themselves; ``asked`` is the line that the text may answer."""
    removed: list[Removed] = []
    if not text:  # most rows have empty fields
        return text, removed
    if not unicodedata.is_normalized("NFC", text):  # as macOS types Vietnamese
        clean, removed = take_secrets(unicodedata.normalize("NFC", text), asked)
        return (clean if removed else text), removed
    letters, lower = _letters(text)
    for rule in _RULES:
        text, found = _replaced(text, rule.name, rule.spans(text, letters, lower))
        if found:
            removed += found
            letters, lower = _letters(text)
    text, found = _replaced(text, _RANDOM_NAME, _random_spans(text, letters))
    removed += found
    text, found = _replaced(text, SHAPED, ((*span, MARK) for span in shaped_spans(text, CODE)))
    removed += found
    lead = f"{asked}\n" if asked else ""
    spelt = old_tones(lead + text)
    spans = _SPOKEN.spans(spelt, _letters(spelt)[1])
    told = [(begin - len(lead), end - len(lead), kind) for begin, end, kind in spans if begin >= len(lead)]
    removed += [Removed(kind, text[begin:end]) for begin, end, kind in told]
    text, _ = _replaced(text, "", ((begin, end, MARK) for begin, end, _ in told))
    return text, removed


async def take_secrets_aside(text: str, asked: str = "") -> tuple[str, list[Removed]]:
    """:func:`take_secrets`, for a long text in a thread."""
    if len(text) > _LONG_TEXT:
        return await asyncio.to_thread(take_secrets, text, asked)
    return take_secrets(text, asked)


def _letters(text: str) -> tuple[bytes, bytes]:
    """The text with one byte per character, ``?`` for non-ASCII ones: faster to search, with the same offsets; and the
    same in lower case."""
    letters = text.encode("ascii", "replace")
    return letters, letters.lower()


def _replaced(text: str, name: str, spans: Iterator[tuple[int, int, str]]) -> tuple[str, list[Removed]]:
    pieces: list[str] = []
    removed: list[Removed] = []
    at = 0
    for begin, end, instead in spans:
        pieces += [text[at:begin], instead]
        before, _, after = instead.partition(MARK)  # what the rule leaves there
        removed.append(Removed(name, text[begin + len(before) : end - len(after)]))
        at = end
    return ("".join([*pieces, text[at:]]), removed) if pieces else (text, [])


def _random_spans(text: str, letters: bytes) -> Iterator[tuple[int, int, str]]:
    """Runs of letters and digits that look random."""
    runs = letters.translate(_IN_RUN)
    at = runs.find(_RUN)
    while at >= 0:
        match = _RANDOM.match(text, at)
        if match and _looks_random(match[0]):
            yield at, match.end(), MARK
        end = runs.find(b" ", at)
        at = runs.find(_RUN, end) if end >= 0 else -1


def _looks_random(run: str) -> bool:
    """Whether a run has capitals, small letters, digits, and a high Shannon entropy."""
    if run.lower() == run or run.upper() == run or not any(map(str.isdigit, run)):
        return False
    shares = [count / len(run) for count in Counter(run).values()]
    return -sum(share * math.log2(share) for share in shares) >= _DOCUMENT.random.least_bits


def without_secrets(value: S) -> tuple[S, int]:
    """:func:`redact` all strings in a struct."""
    clean, count = redact_value(value)
    return cast("S", clean), count


def redact_value(value: Any) -> tuple[Any, int]:
    """:func:`redact` all strings in structs, lists and dicts, except keys."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Struct):
        fields = {name: redact_value(getattr(value, name)) for name in value.__struct_fields__}
        clean = msgspec.structs.replace(value, **{name: item for name, (item, _) in fields.items()})
        return clean, sum(count for _, count in fields.values())
    if isinstance(value, dict):
        pairs = {key: redact_value(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, sum(count for _, count in pairs.values())
    if isinstance(value, list | tuple):
        items = [redact_value(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return value, 0
