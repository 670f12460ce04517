"""Secrets that people tell: a word for one, and in its sentence or the next a value that is no word.

``[told]`` in ``gateway/base/redact.toml`` has the words. Lines of code are left to the patterns there. The time is
linear: only the lines with a word for a secret are read, each sentence once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from msgspec import Struct

_PASSWORD_KIND, _NUMBER_KIND = "password said in a sentence", "code said in a sentence"
# Longer sentences and values are data.
_LONGEST_SENTENCE = 600
_LEAST, _LONGEST_VALUE = 5, 64
_SENTENCE = re.compile(r"\S.*?(?:[.!?…](?=\s)|$)", re.MULTILINE)
_QUOTED = re.compile(r"""(?<!\w)(?:"([^"\n]{4,64})"|'([^'\n]{4,64})'(?!\w)|“([^”\n]{4,64})”)""")
_TOKEN = re.compile(r"""[^\s"`“”,;()|→]+""")
_CODE = re.compile(
    r"""[{}\\]|;\s*$|\w[(\[]|\w=["']|[)\]][.;:]|==|::|!=|\breturn\b|^\s*[\w.\]]+\s=\s"""
    r"|^\s*(?:def|class|import|from|const|let|var|export|assert|if|for|docker|git|pip|npm|kubectl)\s|^\s*[$/*|]"
)
_NUMBER = re.compile(r"(?<![\w.,:/+#-])[0-9](?:[ -]?[0-9]){2,7}#?(?![ -]?[0-9]|\w|[:/%+=°-]|[.,][0-9])")
_HEX = re.compile("[0-9a-fA-F-]{7,}")
_LETTERED = re.compile(
    r"(?<!\S)(?!v?\d+-?[a-z]{2})(?=[A-Za-z-]*[0-9])(?=[0-9-]*[A-Za-z])[A-Za-z0-9-]{4,32}(?!\w)"
)
_DIALLED = re.compile(r"[0-9](?:-[0-9]){2,7}#?")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?:-[0-9]{2}){0,2}")
_NAME = re.compile(r"[A-Z][a-z]+[0-9]+")
# What a value has and a word has not.
_DRAWN = re.compile(r"[0-9!#$%^&*~+=@]")
_CLASSES = [
    re.compile(each) for each in (r"[^\W\d_A-Z]", r"[A-Z]", r"[0-9]", r"[!#$%^&*~+=@_.-](?=.)|[!$&*]")
]


class Told(Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions, verbose and without regard to case."""

    near: list[str]
    password: str
    core: str
    number: str
    code: str
    place: str
    no_secret: str
    user: str
    known: str
    before_value: str
    before_name: str
    before_number: str
    before_other: str
    after_number: str
    looks_back: str
    digit: str


class Teller:
    """Finds values that people tell."""

    def __init__(self, told: Told) -> None:
        def compiled(whole: str, pattern: str) -> re.Pattern[str]:
            return re.compile(whole.replace("@@", f"(?:{pattern})"), re.IGNORECASE | re.VERBOSE)

        self._near = [word.encode() for word in told.near]
        self._password = compiled(r"(?<![\w-])@@(?![\w-])", told.password)
        self._number = compiled(r"(?<![\w-])@@(?![\w-])", told.number)
        self._place = compiled(r"(?<![\w-])@@(?![\w-])", told.place)
        self._no_secret = compiled(r"(?<!\w)@@(?!\w)", told.no_secret)
        self._user = compiled(r"\b@@[\s:]*$", told.user)
        self._known = compiled("^@@$", told.known)
        self._before_value = compiled(r"(?:\b@@|[:=?/|→>])\s*$", rf"{told.before_value}|{told.password}")
        self._before_quoted = compiled(
            r"(?:(?:wi-?fi|@@)(?:['’]s|\s(?:is|are))|\b(?:it\sis|it['’]s|sentence|phrase|words|gõ|type))\s*$",
            told.core,
        )
        self._before_name = compiled(r"\b@@\s*$", told.before_name)
        self._core = compiled(r"(?<!\w)@@(?!\w)", told.core)
        self._before_number = compiled(r"(?:\b@@|['’]s|[:→]|\s=)\s*$", rf"{told.before_number}|{told.number}")
        self._before_other = compiled(r"(?:\b@@|[$€£]|§\W*(?:is|was|là)?\W*)\s*$", told.before_other)
        self._before_code = compiled(r"(?<!\w)@@(?:\s(?:is|are|was|now|là))*\s?[:=]?\s*$", told.code)
        self._after_number = compiled(r"\s*(?:$|[,;!?)…\"'”]|\.(?:\s|$)|[-–]\s|@@(?!\w))", told.after_number)
        self._looks_back = compiled(r"\s*@@", told.looks_back)
        self._direct = compiled(r"(?<!\w)@@(?:\s(?:is|are|was|now|still|là|la))*\s?[:=]?\s*$", told.password)
        self._spoken = compiled(r"(?<!\w)@@(?:[ -]@@){2,7}(?!\w)", told.digit)

    def spans(self, text: str, letters: bytes) -> Iterator[tuple[int, int, str]]:
        """Begin, end and kind of each value, in order; ``letters`` has a byte for each character."""
        for begin, end in self._lines(text, letters):
            yield from self.in_line(text, begin, end)

    def in_line(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
        """:meth:`spans` of one line."""
        if _CODE.search(text[begin:end]):
            return
        sentences = list(_SENTENCE.finditer(text, begin, end))
        before = ""
        for match, following in itertools.zip_longest(sentences, sentences[1:]):
            if len(match[0]) <= _LONGEST_SENTENCE:
                last = 0
                for first, until, kind in sorted(
                    self._values(match[0], before, following[0] if following else "")
                ):
                    if first >= last:
                        yield match.start() + first, match.start() + until, kind
                        last = until
            before = match[0]

    def _lines(self, text: str, letters: bytes) -> list[tuple[int, int]]:
        letters = letters.lower()
        found: set[tuple[int, int]] = set()
        for word in self._near:
            at = letters.find(word)
            while at >= 0:
                end = letters.find(b"\n", at)
                end = len(text) if end < 0 else end
                found.add((letters.rfind(b"\n", 0, at) + 1, end))
                at = letters.find(word, end)
        return sorted(found)

    def _values(self, sentence: str, before: str, following: str) -> Iterator[tuple[int, int, str]]:
        told = self._no_secret.sub(lambda match: "§" * len(match[0]), sentence)
        back = following if self._looks_back.match(following) else ""
        near = f"{self._no_secret.sub('§', before)} {back}"
        number = bool(self._number.search(told))
        if number or self._place.search(told) or self._number.search(near):
            yield from ((*span, _NUMBER_KIND) for span in self._numbers(told, number))
        password = self._password.search(told)
        if password or self._password.search(near):
            yield from ((*span, _PASSWORD_KIND) for span in self._passwords(told, bool(password or back)))

    def _numbers(self, told: str, named: bool) -> Iterator[tuple[int, int]]:
        """``named``: the sentence itself has a word for a number, not just for a place or in the one before."""
        for match in _NUMBER.finditer(told):
            prior = told[: match.start()]
            digits = sum(map(str.isdigit, match[0]))
            expected = not prior or self._before_number.search(prior)
            if _DIALLED.fullmatch(match[0]):  # 4-4-1-9
                yield match.span()
            elif self._before_other.search(prior) or not (
                self._after_number.match(told, match.end())
                or (named and told.startswith((" for the ", " for my "), match.end()))
            ):
                continue
            elif (expected and digits > 3 - named) or (
                named and digits > 3 and not _YEAR.fullmatch(match[0])
            ):
                yield match.span()
        if named:
            yield from (match.span() for match in self._spoken.finditer(told))
            for match in _LETTERED.finditer(told):
                if self._before_code.search(told[: match.start()]):
                    yield match.span()

    def _passwords(self, told: str, own: bool) -> Iterator[tuple[int, int]]:
        """``own``: the sentence itself has a word for a password, or the next one looks back at it."""
        end = 0
        for match in _QUOTED.finditer(told):
            if self._before_quoted.search(told[: match.start()]):
                end = match.end()
                yield match.span(match.lastindex or 0)
        for match in _TOKEN.finditer(told, end):
            value = match[0].lstrip("'*").rstrip("'’*.,:?")
            prior = told[: match.start()]
            left, mark, right = value.rpartition("=") if "=" in value[1:-4] else value.partition(":")
            if not mark and value.count("/") == 1:
                left, mark, right = value.partition("/")
            if mark and right and left.replace("_", "").isalpha():
                value, prior = right, prior + left + mark
            if self._is_value(value, prior, own):
                begin = match.start() + match[0].rindex(value)
                yield begin, begin + len(value)

    def _is_value(self, value: str, prior: str, own: bool) -> bool:
        if (
            not _LEAST <= len(value) <= _LONGEST_VALUE
            or value.isdigit()
            or "/" in value
            or self._known.match(value)
        ):
            return False
        if _HEX.fullmatch(value):
            return bool(self._direct.search(prior))
        classes = sum(bool(each.search(value)) for each in _CLASSES)
        if classes < 2 or not _DRAWN.search(value):
            return False
        expected = self._before_value.search(prior) or not (own or prior)
        if classes > 2 and not _NAME.fullmatch(value):
            return bool(own or expected)
        if self._user.search(prior):
            return False
        core = self._core.search(prior) and len(value) > _LEAST + 1 and not self._before_name.search(prior)
        return bool(expected or core)
