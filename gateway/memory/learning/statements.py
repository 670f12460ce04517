"""The clause of a message that a quote comes from, and whether it states something. Pure, for English and Vietnamese.

A question, a hypothetical, a report of somebody else's words, a quotation and code state nothing about the writer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.stems import old_tones, stem
from gateway.store.memory.messages import StoredMessage

# Letters for a regular expression: a range would have small ones too.
UPPER = "A-Z" + "".join(letter for letter in map(chr, range(0xC0, 0x1EFA)) if letter.isupper())


# A shorter quote stands in too many texts.
_LEAST_QUOTE = 3

# A point inside a number or a name, or behind an initial or a title, ends no sentence; one between a small letter and a
# word with a capital does ("a student.Besides, …").
SENTENCE = re.compile(
    r"[^\n.!?…]*(?:(?:[.…](?=\w)(?!(?<=[a-z]{3}\.)[A-Z][a-z’']*[\s,])|"
    r"(?:(?<=\b[^\W\d_])|(?<=\b(?i:Dr|Mr|Ms|St))|(?<=\b(?i:Mrs))|(?<=\b(?i:Prof)))\.(?= ))"
    r"[^\n.!?…]*)*[.!?…]*\n*"
)
CLAUSE = any_case(
    # "a house with a garden, in Lund" is one clause, so is "on May 1st, 1988".
    rf"[;:–—]\s|,\s(?!(?:in|near)\s(?-i:[{UPPER}])\w+\W*$|(?:19|20)\d\d\b)|"
    r"\s(?:and|but|while|because|so|cuz|cos|coz|bc|although|even though|btw|by the way|fyi|"
    r"và|nhưng|(?<!không )còn|vì|nên|(?:rồi|nhưng|vậy|thế) mà)\s"
)
WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
HYPOTHETICAL = any_case(
    r"\b(?:if|unless|suppose|supposing|imagine|maybe|perhaps|might|(?<![0-9] )(?<!máy )"
    r"(?<!since )(?<!until )(?<!in )(?<!from )(?<!by )(?<!last )(?<!next )(?-i:may)"
    r"(?! (?:mắn|vá|đo|quần|áo))|wish|pretend|could|"
    r"hypothetically|would(?! (?:like|love|prefer|rather))|nếu|giả sử|giá mà|có lẽ|có thể|biết đâu|ước gì|chắc là)\b"
)
_POLITE = any_case(r"^\W*(?:can|could|would|will) you\b|\bplease\b")
REPORTED = any_case(
    r"\b(?<!\bas i )(?<!\blike i )(?:said|says|saying|told|tells|asked|asks|wrote|writes|texted|"
    r"posted|tweeted|emailed|claims?|claimed|thinks?|thought|believes?|heard|according to|quoting|"
    r"bảo(?! (?:vệ|hành|hiểm|quản|trì|tàng|đảm|dưỡng|mật))|"
    r"nói(?! (?:luôn|thêm|trước|thật) )|kể(?! (?:cả|từ))|(?<!câu )hỏi|"
    r"nhắn|nghe (?:đồn|thấy)|cho rằng)\b"
)
_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{2,})[\"”»]")
# More than a quoted name.
PASSAGE = re.compile(r"[\"“«][^\"“”«»\s]+\s[^\"“”«»\n]+[\"”»]")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|^(?:>|    |\t|//|#|\$ )[^\n]*$", re.S | re.M)
# "Translate to German: …": text that somebody works on, unless the writer is in the words before it.
_INTRODUCED = re.compile(r"^\W*(?:[\w'’]+\W+){2,}?[\w'’]+: ")
WRITER = any_case(r"\b(?:i|me|my|mine|we|our|us|tôi|mình|tớ|em)\b")
NEGATION = any_case(
    r"\b(?:not|no|never|nothing|none|without|stop|stopped|avoid|cannot|hates?|hated|dislikes?|neither|nor|tired of|"
    r"không|đừng|chẳng|chả|chưa|ghét|bỏ|thôi)\b|n['’]t\b"
)


class QuotedStatement(Struct, frozen=True):
    """``clause`` holds the quote and is part of ``sentence``; ``before`` is the sentence up to the clause."""

    clause: str
    sentence: str
    before: str

    @property
    def own(self) -> str:
        """The clause without the words of others that it quotes."""
        return PASSAGE.sub(" ", self.clause)

    @property
    def negated(self) -> bool:
        return bool(NEGATION.search(self.own))

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(stems(self.own))


def quoted_statement(
    quote: str, messages: Sequence[StoredMessage], *, users_only: bool, requests: bool = False
) -> tuple[StoredMessage, QuotedStatement] | None:
    """The first message that states the quote, with the :func:`statement`. Failed messages do not count."""
    if len(_plain(quote).strip("\"'“”")) < _LEAST_QUOTE:
        return None
    for message in messages:
        if not message.failed and (message.role == "user" or not users_only):
            said = statement(message.text, quote, requests=requests)
            if said is not None:
                return message, said
    return None


def statement(text: str, quote: str, *, requests: bool = False) -> QuotedStatement | None:
    """The first statement of ``text`` that contains ``quote``, ignoring spaces and case; None if there is none.

    With ``requests``, a polite question ("Can you note that …?") counts too.
    """
    wanted = _plain(quote).strip("\"'“”.,;:! ")
    if not wanted:
        return None
    visible = CODE.sub(" ", text)
    for sentence in SENTENCE.findall(visible):
        if wanted in _plain(sentence):
            found = _in_sentence(" ".join(sentence.split()), wanted, requests)
            if found is not None:
                return found
    return None


def stems(text: str) -> Iterator[str]:
    """Stems of the words of ``text``, numbers included."""
    return map(stem, WORD.findall(old_tones(text.replace("_", " "))))


def mistaken(text: str, said: str) -> bool:
    """Whether only a word of the same stem is said for one of ``text``: "main" for "Maine"."""
    heard = WORD.findall(said.casefold())
    return any(
        len(word) > 3
        and word not in heard
        and (f"{word}e" in heard or (word.endswith("e") and word[:-1] in heard))
        for word in WORD.findall(text.casefold())
    )


def _in_sentence(sentence: str, wanted: str, requests: bool) -> QuotedStatement | None:
    polite = requests and _POLITE.search(sentence)
    asks = sentence.rstrip("\"'”)").endswith("?")
    rest = sentence[polite.end() :] if polite else sentence
    if (asks and not polite) or HYPOTHETICAL.search(rest) or REPORTED.search(sentence):
        return None
    quotations = [_plain(quoted) for quoted in _QUOTED.findall(sentence)]
    if any(wanted in quoted or (quoted in wanted and " " in quoted) for quoted in quotations):
        return None
    at = _plain(sentence).find(wanted)
    introduced = None if requests else _INTRODUCED.match(sentence)
    if introduced and not WRITER.search(introduced[0]) and at + len(wanted) > introduced.end():
        return None
    cuts = [0, *(match.start() for match in CLAUSE.finditer(sentence)), len(sentence)]
    begin = max(cut for cut in cuts if cut <= at)
    end = min(cut for cut in cuts if cut >= min(at + len(wanted), len(sentence)))
    return QuotedStatement(sentence[begin:end], sentence, sentence[:begin])


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()
