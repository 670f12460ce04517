"""Secrets that people tell: a word for one, and in its sentence or the next a value that is no word.

``[spoken]`` in ``gateway/base/redact.toml`` has the words. Lines of code are left to the patterns there. A line that
asks counts as the sentence before the next line. The time is linear: only the lines with a word for a secret and those
that answer them are read, each sentence once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from msgspec import Struct

from gateway.base.patterns import any_case

_PASSWORD_KIND, _NUMBER_KIND = "password said in a sentence", "code said in a sentence"
# Longer sentences and values are data.
_LONGEST_SENTENCE = 600
_LEAST, _LONGEST_VALUE = 5, 64
_LONGEST_QUESTION = 9  # words
_SENTENCE = re.compile(r"\S.*?(?:[.!?…](?=\s)|$)", re.MULTILINE)
_QUOTED = re.compile(r"""(?<!\w)(?:"([^"\n]{4,64})"|'([^'\n]{4,64})'(?!\w)|“([^”\n]{4,64})”)""")
_TOKEN = re.compile(r"""[^\s"`“”,;()|→]+""")
CODE = re.compile(
    r"""[{}\\]|;\s*$|\w[(\[]|\w=["']|[)\]][.;:]|==|::|!=|\breturn\b|^\s*[\w.\]]+\s=\s"""
    r"|^\s*(?:(?:def|class|const|var|export|assert|docker|git|pip|npm|kubectl)\s|from\s\S+\simport\s|import\s\w+$|let\s\w+\s="
    r"|for\s.*\sin\s.*:|if\s.*:$|\*/|[$/|])"
)
_NUMBER = re.compile(
    r"(?<![\w.,:/+-])(?:[A-Z]-)?[0-9](?:(?: - |[ #-]| then )?[0-9]){2,19}[#*]?(?![ -]?[0-9]|\w|[:/%+=°-]|[.,][0-9])"
)
_LONGEST_NUMBER = 8  # digits, unless they stand right behind a word for a password or code
_HEX = re.compile("[0-9a-fA-F-]{7,}")
# Required of any value, unless it is spoken digit by digit.
_VALUE_LIKE = re.compile(r"""[0-9!#$%^&*~+=@"“']|[a-fA-F-]{7}""")
_LETTERED = re.compile(
    r"(?<!\S)(?!v?\d+-?[a-z]{2})(?=[A-Za-z-]*[0-9])(?=[0-9-]*[A-Za-z])[A-Za-z0-9-]{4,32}(?!\w)"
)
# Digits as on a keypad.
_DIALLED = re.compile(
    r"[0-9](?:-[0-9]){2,7}#?|[0-9]{3,8}[#*](?!\w)|[0-9]{1,6}#[0-9]{1,6}[#*]?|"
    r"[0-9](?: [0-9]){3,7}|[0-9]{1,2}(?:(?: ?- ?| then )[0-9]{1,2}){2,3}"
)
_IS = any_case(r"(?:\b(?:is|are|was|be|now|là|thành)|:)\s*$")
# A unit, or a plural.
_COUNTS = any_case(
    r"[*/]|\s?(?:(?:[mck]?m|m?g|kg|m?l|lbs?|oz|ft|mi|[mk]ph|hp|k?wh?|[va]|mah?|[kmg]?hz|[kmgt]b|px|pts?|ms|min|hrs?|h|x|rpm|psi|bar|"
    r"am|pm|usd|eur|gbp|vnđ?|đ|tr|tỷ|cái|con|lít|mét|giờ|năm|lần|học|vé|xe)\b"
    r"|(?!thanks|always|cheers|guys|pls)[^\W\d_]{2,}(?<![ui])s\b|(?:people|feet|percent|nghìn|triệu|đồng|người|chiếc|trang|phút|tháng|viên|bước)\b)"
)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?:-[0-9]{2}){0,2}")
_NAME = re.compile(r"[A-Z][a-z]+[0-9]+")
_ASKS = any_case(
    r"\?\s*$|^\W*(?:what|which|where|who|how|do|does|did|can|could|send|text|tell|give|remind)s?\b|\bnext\smessage\W*$|\b(?:please|pls|plz)\W*$|\bbelow\W*$"
    r"|^\W*(?:\w+\s)?(?:nhắn|gửi|cho)\b|\b(?:gì|nào|sao|đâu|nhiêu|không|ko|hả|chưa|với)\W*$"
)
_ASKS_COUNT = any_case(
    r"\b(?:what\stime|when|how\s(?:many|much|long|far|old|big|wide|tall)|mấy|bao\snhiêu)\b"
)
# Followed by the name of a network rather than its password.
_NETWORK = any_case(r"\bwi-?fi(?:\s(?:for|at|in|of|ở|cho)(?:\s\w+){1,3}?)?(?:\s(?:is|was|là))?[\s:]*$")
# Letters and then digits, as the last word of a sentence.
_MADE_UP = re.compile(r"(?=.{7})[^\W\d_]{3,}[_@.!-]?[0-9]+[!#$*]?")
# Letters with digits in or behind them: "moth7lamp", "changeme99", "Herbst.2026x".
_HINTED = re.compile(
    r"(?=.{7})[^\W\d_]{3,}(?:[0-9]{1,2}[^\W\d_]{3,}|[_@.!-]?[0-9]{2,4}[^\W\d_]{0,2})[!#$*]?", re.ASCII
)
# Four characters, right behind a word for a password: "5Tq9".
_SHORT = re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])\w{4}", re.ASCII)
_ENDS = any_case(r"\s*(?:$|[,;.!?)…]|(?:by|now|btw|lol|i|for|on|as|and|but|nha|nhé|ạ)\b)")
# One word in reply to a question for a password, unless it is a reply of its own.
_ANSWER = any_case(
    r"\s*(?:(?:yeah|yes|yep|ok|oh|sure|uh|um|hm+)\W+){0,2}(?:it(?:['’]?s|\sis)\s|i\sthink\s){0,2}"
    r"(?!(?:nothing|unknown|sorry|thanks|forgot|forgotten|already|maybe|dunno|whatever|secret|private|nevermind|please|"
    r"correct|incorrect|really|should|because|wrong|different|always|[^\W\d_]+(?:ed|ing|able|ible|ive|ly|ous|ful|less))\b)"
    r"([^\W\d_]{6,32})[.!]?\s*"
)
# A name in code, unless it stands right behind a word for a password.
_LIKE_NAME = re.compile(r"[a-z]+(?:_[a-z]+)+_?[0-9]{1,4}")
# Signs of a value, which words do not have.
_DRAWN = re.compile(r"[0-9!#$%^&*~+=@]")
_CLASSES = [
    re.compile(each) for each in (r"[^\W\d_A-Z]", r"[A-Z]", r"[0-9]", r"[!#$%^&*~+=@_.-](?=.)|[!$&*]")
]


class SpokenSecretWords(Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions, verbose and without regard to case."""

    near: list[str]
    password: str
    hint: str
    core: str
    number: str
    code: str
    place: str
    asked: str
    no_secret: str
    user: str
    named: str
    known: str
    before_value: str
    before_name: str
    before_number: str
    before_other: str
    after_number: str
    after_value: str
    looks_back: str
    digit: str


class SpokenSecretFinder:
    """Finds values that people tell."""

    def __init__(self, told: SpokenSecretWords) -> None:
        def compiled(whole: str, pattern: str) -> re.Pattern[str]:
            return any_case(whole.replace("@@", f"(?:{pattern})"), re.X)

        self._near = [word.encode() for word in _shortest(told.near)]
        self._password = compiled(r"(?<![\w-])@@(?![\w-])", told.password)
        self._hint = compiled(r"(?<![\w-])@@(?!\w)", told.hint)
        self._number = compiled(r"(?<![\w-])@@(?![\w-])", told.number)
        self._place = compiled(r"(?<![\w-])@@(?![\w-])", told.place)
        self._after_value = compiled(r"\W*(?:@@\W*)+$", told.after_value)
        self._for_place = compiled(r"\sfor\s(?:the|my)\s(?:\w+\s)?@@(?![\w-])", told.place)
        self._asked_for = compiled(r"(?<![\w-])@@(?![\w-])", told.asked)
        self._no_secret = compiled(r"(?<!\w)@@(?!\w)", told.no_secret)
        self._user = compiled(r"\b@@[\s:]*$", told.user)
        self._named = compiled(r"\b@@\s*$", told.named)
        self._known = compiled("^@@$", told.known)
        self._before_value = compiled(r"(?:\b@@|[:=?/|→>(])\s*$", rf"{told.before_value}|{told.password}")
        self._before_quoted = compiled(
            r"(?:@@|(?:wi-?fi|@@)(?:['’]s|\s(?:is|are|to))|\b(?:it\sis|it['’]s|sentence|phrase|words?(?:\s[\w'’-]+){0,6}\sis|words|gõ|type))\s*$",
            told.core,
        )
        self._before_name = compiled(r"\b@@\s*$", told.before_name)
        self._core = compiled(r"(?<!\w)@@(?!\w)", told.core)
        self._before_number = compiled(r"(?:\b@@|['’]s|[:→]|\s=)\s*$", rf"{told.before_number}|{told.number}")
        self._before_other = compiled(r"(?:\b@@|[$€£]|§\W*(?:is|was|là)?\W*)\s*$", told.before_other)
        self._before_code = compiled(
            r"(?<!\w)@@(?:(?:\s(?:is|are|was|now|là))*\s?[:=]?|,\s(?:it|that)['’]?s|(?:\s[\w-]+){1,4}\s?(?:is|are|now|là|[:=]))\s*$",
            told.code,
        )
        self._after_number = compiled(
            r"\s*(?:$|[,;!?()…\"'”]|\.+(?:\s|$)|[-–]\s|@@(?!\w))", told.after_number
        )
        self._looks_back = compiled(r"\s*@@", told.looks_back)
        self._direct = compiled(r"(?<!\w)@@(?:\s(?:is|are|was|now|still|là|la))*\s?[:=]?\s*$", told.password)
        # "password for the account is"
        self._of_core = compiled(
            r"(?<!\w)(?:pass|@@)(?:\s(?!(?:and|or|is|are|was|với|và|là)\b)[\w'’-]+){1,5}?(?:\s(?:is|are|was|now|là))*\s?:?\s*$",
            told.core,
        )
        self._names_it = compiled(
            r"\s(?:is|are|for|as|=|là)\s(?:(?:the|my|your|our|his|her)\s)?(?:(?!most|same|worst|only)[\w-]+\s){0,2}?(?:pass|@@)(?!\w)"
            r"|\s(?:is\swhat\s(?:i|we)\s(?:always\s)?use|opens|unlocks|(?:gets|lets)\s(?:you|me)\s(?:in|on))(?!\w)",
            told.core,
        )
        self._right_behind = compiled(
            r"(?<![\w-])@@\s?[:=,]?\s$", rf"(?:my|his|her|your|the)\s(?:\w+\s)?pin|{told.code}"
        )
        # "what's your password?", "the wifi password?", but not "which password manager?"
        self._asks_for_it = compiled(
            r"\b(?:what['’]?s?|remember)\s.*\bthe\swi-?fi\b(?!\s(?:like|speed|doing))|(?:\b(?:what(?:['’]?s)?|which)\b.*|^\W*(?:(?:and|the|my|your)\s)*(?:wi-?fi\s|network\s|login\s|router\s)?)(?<!\w)@@"
            r"(?:\s(?:for|of|to|on|at|now|again|did|do|is)\b.{0,60})?\W*$|(?<!\w)@@(?:\s\w+){0,5}\s(?:gì|nào)\W*$",
            told.core,
        )
        self._spoken = compiled(r"(?<!\w)@@(?:[ -]@@){2,7}(?!\w)", told.digit)

    def spans(self, text: str, lower: bytes) -> Iterator[tuple[int, int, str]]:
        """Begin, end and kind of each value, in order; ``lower`` has a byte for each character, in lower case."""
        for begin, end in self._lines(text, lower):
            yield from self.in_line(text, begin, end)

    def in_line(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
        """:meth:`spans` of one line."""
        asked = text[text.rfind("\n", 0, max(begin - 1, 0)) + 1 : max(begin - 1, 0)]
        before = asked if len(asked) <= _LONGEST_SENTENCE and _ASKS.search(asked) else ""
        answer = _ANSWER.fullmatch(text, begin, end)
        if answer and self._asks_for_it.search(before):
            yield (*answer.span(1), _PASSWORD_KIND)
            return
        if not (_VALUE_LIKE.search(text, begin, end) or self._spoken.search(text, begin, end)):
            return
        if CODE.search(text[begin:end]):
            return
        sentences = list(_SENTENCE.finditer(text, begin, end))
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
        found: set[tuple[int, int]] = set()
        for word in self._near:
            at = letters.find(word)
            while at >= 0:
                end = letters.find(b"\n", at)
                end = len(text) if end < 0 else end
                found.add((letters.rfind(b"\n", 0, at) + 1, end))
                if end < len(text):
                    until = letters.find(b"\n", end + 1)
                    found.add((end + 1, len(text) if until < 0 else until))
                at = letters.find(word, end)
        return sorted(found)

    def _values(self, sentence: str, before: str, following: str) -> Iterator[tuple[int, int, str]]:
        told = self._no_secret.sub(lambda match: "§" * len(match[0]), sentence)
        back = following if self._looks_back.match(following) else ""
        near = f"{self._no_secret.sub('§', before)} {back}"
        number = bool(self._number.search(told))
        if (
            number
            or self._place.search(told)
            or self._number.search(near)
            or self._asked(self._place, before)
        ):
            yield from ((*span, _NUMBER_KIND) for span in self._numbers(told, number))
        password = self._password.search(told)
        if password or self._password.search(near) or self._asked(self._asked_for, before):
            asked = self._asked(self._password, before)
            yield from (
                (*span, _PASSWORD_KIND) for span in self._passwords(told, bool(password or back), asked)
            )
        elif self._hint.search(told):
            yield from ((*span, _PASSWORD_KIND) for span in self._hinted(told))

    def _hinted(self, told: str) -> Iterator[tuple[int, int]]:
        """Made-up words at the end of what is said."""
        for match in _TOKEN.finditer(told):
            value = match[0].rstrip("'’*.,:?")
            prior = told[: match.start()]
            if (
                _HINTED.fullmatch(value)
                and not self._known.match(value)
                and self._before_value.search(prior)
                and not (self._named.search(prior) or self._user.search(prior))
                and _ENDS.match(told, match.start() + len(value))
            ):
                yield match.start(), match.start() + len(value)

    def _asked(self, word: re.Pattern[str], before: str) -> bool:
        """Whether the sentence before asks for the thing alone."""
        short = len(before.split()) <= _LONGEST_QUESTION
        return bool(short and _ASKS.search(before) and not _ASKS_COUNT.search(before) and word.search(before))

    def _numbers(self, told: str, named: bool) -> Iterator[tuple[int, int]]:
        """``named``: the sentence itself has a word for a number, not just for a place or in the one before."""
        for match in _NUMBER.finditer(told):
            prior = told[: match.start()]
            if prior.endswith("#"):  # of an issue, unless it is a code
                prior = prior[:-1]
                if not self._before_code.search(prior):
                    continue
            digits = sum(map(str.isdigit, match[0]))
            expected = not prior or self._before_number.search(prior)
            if digits > _LONGEST_NUMBER and not (
                self._direct.search(prior) or self._before_code.search(prior)
            ):
                continue
            if _DIALLED.fullmatch(match[0]) or (
                digits > 3
                and (self._right_behind.search(prior) or (named and _IS.search(prior)))
                and not self._before_other.search(prior)
                and not _COUNTS.match(told, match.end())
            ):
                yield match.span()
            elif self._before_other.search(prior) or not (
                self._after_number.match(told, match.end())
                or (named and not _COUNTS.match(told, match.end()))
                or (
                    self._for_place.match(told, match.end())
                    and told.startswith((" for the ", " for my "), match.end())
                )
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

    def _passwords(self, told: str, own: bool, asked: bool) -> Iterator[tuple[int, int]]:
        """``own``: the sentence itself has a word for a password, or the next one looks back at it. ``asked``: the one
        before asks for one."""
        end = 0
        for match in _QUOTED.finditer(told):
            if self._before_quoted.search(told[: match.start()]) or (
                asked and not told[: match.start()].strip()
            ):
                end = match.end()
                yield match.span(match.lastindex or 0)
        for match in _TOKEN.finditer(told, end):
            value = match[0].lstrip("'*").rstrip("'’*.,:?")
            prior = told[: match.start()]
            left, mark, right = value.rpartition("=") if "=" in value[1:-4] else value.partition(":")
            if not mark and value.count("/") == 1:
                left, mark, right = value.partition("/")
            if mark and right and left.replace("_", "").isalpha():
                # "admin:" has its password behind it, "user:" has a name
                value, prior = right, prior + ("" if left in ("admin", "root") else left) + mark
            if _NETWORK.search(prior) and not value.islower() and self._core.search(told, match.end()):
                continue  # the name of the network, and then its password
            last = not told[match.end() :].strip() or bool(self._after_value.match(told, match.end()))
            begins = self._names_it.match(told, match.end()) and not self._known.match(value)
            if self._is_value(value, "use " if begins else prior, own) or (
                last and (own or asked) and self._is_made_up(value, prior, asked)
            ):
                begin = match.start() + match[0].rindex(value)
                yield begin, begin + len(value)

    def _is_made_up(self, value: str, prior: str, asked: bool) -> bool:
        """Whether the last word of a sentence, somewhere behind a word for a password, looks made up."""
        told = _MADE_UP.fullmatch(value) and not self._known.match(value)
        return bool(told and (asked or self._password.search(prior))) and not (
            self._before_name.search(prior) or self._user.search(prior) or self._named.search(prior)
        )

    def _is_value(self, value: str, prior: str, own: bool) -> bool:
        if (
            not _LEAST - bool(_SHORT.fullmatch(value) and self._direct.search(prior))
            <= len(value)
            <= _LONGEST_VALUE
            or value.isdigit()
            or "/" in value
            or (
                self._known.match(value) and not (_LIKE_NAME.fullmatch(value) and self._of_core.search(prior))
            )
        ):
            return False
        if _HEX.fullmatch(value):
            return bool(self._direct.search(prior))
        if self._named.search(prior) and not self._core.search(prior):
            return False
        classes = sum(bool(each.search(value)) for each in _CLASSES)
        if classes < 2 or not _DRAWN.search(value):
            return False
        expected = self._before_value.search(prior) or not (own or prior)
        if classes > 2 and not _NAME.fullmatch(value):
            return bool(own or expected)
        named = self._user.search(prior) or (_NETWORK.search(prior) and not value.islower())
        if named and not self._of_core.search(prior):
            return False
        core = self._core.search(prior) and len(value) > _LEAST + 1 and not self._before_name.search(prior)
        return bool(expected or core)


def _shortest(words: list[str]) -> list[str]:
    """The words that contain no other one: a line that has a word has one of them."""
    return [
        each for each in dict.fromkeys(words) if not any(other in each for other in words if other != each)
    ]
