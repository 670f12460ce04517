"""Secrets that people tell: a word for one, and in its sentence or the next a value that is no word.

``[told]`` in ``gateway/base/redact.toml`` has the words. Lines of code are left to the patterns there. The time is
linear: only the lines with a word for a secret are read, each sentence once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

# Longer sentences and values are data.
_LONGEST_SENTENCE = 600
_LONGEST_VALUE = 64
_SENTENCE = re.compile(r"\S.*?(?:[.!?…](?=\s)|$)", re.MULTILINE)
_QUOTED = re.compile(r"""(?<!\w)(?:"([^"\n]{4,64})"|'([^'\n]{4,64})'(?!\w)|“([^”\n]{4,64})”)""")
_TOKEN = re.compile(r"""[^\s"`“”,;()|→]+""")
_CODE = re.compile(
    r"""[{}<\\]|\w>|;\s*$|\w[(\[]|\w=["']|[)\]][.;:]|==|::|!=|\breturn\b|^\s*[\w.\]]+\s=\s"""
    r"|^\s*(?:def|class|import|from|const|let|var|export|assert|if|for|docker|git|pip|npm|kubectl)\s|^\s*[$#/*|]"
)
_NUMBER = re.compile(r"(?<![\w.,:/+#-])[0-9](?:[ -]?[0-9]){2,7}#?(?![ -]?[0-9]|\w|[:/%+=°-]|[.,][0-9])")
_CODE_VALUE = re.compile(r"(?<!\S)(?!v?\d+-?[a-z]{2})(?=[A-Za-z-]*[0-9])(?=[0-9-]*[A-Za-z])[A-Za-z0-9-]{4,32}(?!\w)")
_HEX = re.compile("[0-9a-fA-F-]{7,}")
_CLASSES = [re.compile(each) for each in (r"[^\W\d_A-Z]", r"[A-Z]", r"[0-9]", r"[!#$%^&*~+=@_.-](?=.)|[!$&*]")]


class Told(Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions, verbose and without regard to case."""

    near: list[str]
    password: str
    number: str
    code: str
    place: str
    no_secret: str
    user: str
    known: str
    before_value: str
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
        self._before_number = compiled(r"(?:\b@@|['’]s|[:→]|\s=)\s*$", told.before_number)
        self._before_other = compiled(r"(?:\b@@|[$€£]|§\W*(?:is|was|là)?\W*)\s*$", told.before_other)
        self._before_code = compiled(r"(?<!\w)@@(?:\s(?:is|are|was|now|là))*\s?[:=]?\s*$", told.code)
        self._after_number = compiled(r"\s*(?:$|[,;!?)…\"'”]|\.(?:\s|$)|[-–]\s|@@(?!\w))", told.after_number)
        self._looks_back = compiled(r"\s*@@", told.looks_back)
        self._direct = compiled(r"(?<!\w)@@(?:\s(?:is|are|was|now|still|là|la))*\s?[:=]?\s*$", told.password)
        self._spoken = compiled(r"(?<!\w)@@(?:[ -]@@){2,7}(?!\w)", told.digit)

    def spans(self, text: str, letters: bytes) -> Iterator[tuple[int, int]]:
        """Begin and end of each value, in order."""
        for begin, end in self._lines(text, letters):
            sentences = list(_SENTENCE.finditer(text, begin, end))
            before = ""
            for at, match in enumerate(sentences):
                following = sentences[at + 1][0] if at + 1 < len(sentences) else ""
                if len(match[0]) <= _LONGEST_SENTENCE:
                    for first, last in sorted(self._values(match[0], before, following)):
                        yield match.start() + first, match.start() + last
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
        return sorted(each for each in found if not _CODE.search(text[each[0] : each[1]]))

    def _values(self, sentence: str, before: str, following: str) -> Iterator[tuple[int, int]]:
        told = self._no_secret.sub(lambda match: "§" * len(match[0]), sentence)
        earlier = self._no_secret.sub("§", before)
        back = following if self._looks_back.match(following) else ""
        number = self._number.search(told)
        if number or self._place.search(told) or self._number.search(earlier) or self._number.search(back):
            yield from self._numbers(told, bool(number))
        password = self._password.search(told)
        if password or self._password.search(earlier) or self._password.search(back):
            yield from self._passwords(told, bool(password or back))

    def _numbers(self, told: str, named: bool) -> Iterator[tuple[int, int]]:
        for match in _NUMBER.finditer(told):
            prior = told[: match.start()]
            if self._before_other.search(prior) or not self._after_number.match(told, match.end()):
                continue
            expected = self._before_number.search(prior)
            year = re.fullmatch("(?:19|20)[0-9]{2}(?:-[0-9]{2}){0,2}", match[0])
            if expected or (named and not year and sum(map(str.isdigit, match[0])) > 3):
                yield match.span()
        for match in _CODE_VALUE.finditer(told) if named else ():
            if self._before_code.search(told[: match.start()]):
                yield match.span()
        if named:
            yield from (match.span() for match in self._spoken.finditer(told))

    def _passwords(self, told: str, own: bool) -> Iterator[tuple[int, int]]:
        end = 0
        for match in _QUOTED.finditer(told):
            if not own and len(told[: match.start()].split()) < 3:  # "It is …"
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
            strength = self._strength(value) or int(bool(_HEX.fullmatch(value) and self._direct.search(prior)))
            expected = bool(self._before_value.search(prior)) or not (own or prior)
            if (strength > 1 and (own or expected)) or (strength and expected and not self._user.search(prior)):
                begin = match.start() + match[0].rindex(value)
                yield begin, begin + len(value)

    def _strength(self, value: str) -> int:
        """2 for what no one writes but as a password, 1 for what may be a name, 0 for the rest."""
        classes = sum(bool(each.search(value)) for each in _CLASSES)
        digits = sum(map(str.isdigit, value))
        if not 5 <= len(value) <= _LONGEST_VALUE or "/" in value:
            return 0
        if digits == len(value) or self._known.match(value) or _HEX.fullmatch(value):
            return 0
        symbols = re.search("[!#$%^&*~+=@]", value)
        if classes > 2 and (digits or symbols) and not re.fullmatch("[A-Z][a-z]+[0-9]+", value):
            return 2
        return int(classes > 1 and bool(digits or symbols))
