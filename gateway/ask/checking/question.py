"""A question as the checks read it: its names, its other words, and the kind of thing that it asks for."""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from itertools import pairwise
from typing import Literal

import msgspec
from msgspec import Struct

from gateway.ask.checking.evidence import SAME_AS, as_meant, meaning
from gateway.ask.text.synonyms import STANDING_FOR_OTHERS, synonymous
from gateway.ask.text.wording import signs
from gateway.ask.text.words import content_words, features, tokens
from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.store.stop_words import STOP_WORDS, VIETNAMESE, stop_words

Kind = Literal["year", "time", "number", "person", "name"]

_SHORTEST_MISSPELT, _SIMILAR = 5, 0.81
_SHORTEST_PART = 3  # of a word that pages write as two
_SHORTEST_ROOT = 6  # of words that differ in their last letter only
_KINDS: dict[Kind, re.Pattern[str]] = {
    # Not "80 euros a year", "ten years old", "next year".
    "year": any_case(
        r"\bwhen (?:was|were|did)\b|\b(?<!\ba )(?<!\bper )(?<!\bnext )(?<!\bthis )(?<!\blast )(?<!\bevery )"
        r"(?<!\beach )(?<![0-9] )(?<!\bmany )years?\b(?! old\b)|\bdate\b"
    ),
    "time": any_case(
        r"\bwhen (?:do|does|is|are|can|could|may|must|should|will|has|have)\b|\b(?:what|which) (?:time|day|month)\b"
        r"|\buntil when\b"
    ),
    "number": any_case(
        r"\bhow (?:many|much|long|large|big|old|often|far|fast|tall|high)\b"
        r"|\bwhat (?:do|does|did|would) .*\bcosts?\b|\bwhat (?:is|are) the (?:price|cost|fee)s?\b"
        r"|\bwhat(?:['’]s| is| are) the (?:\w+ )?(?:distance|length|height|width|weight|number|size|age|speed"
        r"|amount|minimum|maximum|percentage|proportion|population|temperature)s?\b"
        r"|\b(?:what|which) (?:percent|percentage|proportion|fraction|number|amount|age)\b"
    ),
    "name": any_case(
        r"\bwhat(?:['’]s| is| was| are| were) the (?:full |real |first |last )?names? of (?:the|our|your|my|this) "
        r"(?-i:[a-z])"
    ),
    # Not "people who never rowed", nor "Who is Chris Pressey?", which asks what the page says about him;
    # "Who is the treasurer?" asks for a name, "Who may sign?" rather for a rule.
    "person": any_case(
        r"(?<!\bpeople )(?<!\bpersons )(?<!\bperson )(?<!\bthose )(?<!one )(?<!body )(?<!\bmembers )"
        r"(?<!\bmember )\bwho(?:m|se)?\b(?! (?:is|was|are)\b"
        r"(?! (?:in|responsible|(?:the|our|your|my) (?-i:[a-z]+))\b))"
        r"(?! (?:can|may|must|should|(?:is|are) allowed to)\b)"
        r"|\b(?:author|inventor|creator)\b"
    ),
}
# It asks for a thing, and says of whom: "Which file tells who wrote it?"
_RELATIVE_WHO = any_case(
    r"\W*(?:which|what|where|how|why|when) (?!(?:is|was|are|were|person|people|name|man|woman|one)\b)\w+\b"
    r"(?!.*\b(?:and|,) who).*\bwho"
)
_FOREIGN_KINDS: dict[Kind, re.Pattern[str]] = {
    "year": any_case(r"\b(?:jahre?|năm nào)\b"),
    "time": any_case(
        r"\b(?:wann|quand|cuándo|quando|wanneer|(?:khi|lúc|tháng|ngày|mùa|giờ) nào|bao giờ|mấy giờ)\b"
    ),
    "number": any_case(
        r"\b(?:wie ?viele?|combien|cuánt[oa]s?|quant[aeio]s?|hoeveel|bao nhiêu|bao lâu|bao xa|mấy|tỷ lệ nào)\b"
    ),
    "person": any_case(r"\b(?:wer|wem|wessen|qui|quién(?:es)?|chi|quem|ai)\b"),
}
# What does it, and what a thing must have to do with: the zeppelins of "What strength do zeppelins have?", the chess of
# "Which games are based on chess?", the gym of "Is there a gym?". One that no page has is as good as a name.
_SUBJECT = any_case(
    r"\b(?:do|does|did) (?:(?:the|an?) )?(\w+) \w+(?: (?:like|for|to|in|on|with|from))?\W*\Z"
    r"|\A\W*(?:which|what|is there|are there|any)\b.* (?:about|after|as|based on|by|for|from|like|on|uses?|with) "
    r"(?:(?:the|an?) )?([^\W\d_]+)(?: \w+)?\W*\Z"
    r"|\A\W*(?:(?:is|are) there|do(?:es)? (?:\w+ ){1,3}(?:have|offer|sell)) (?:(?:an?|any|some) )?([^\W\d_]+)"
    r"(?: (?:at|for|in|near|on|to)\b.*)?\W*\Z"
)
_BETWEEN = frozenset("/&")  # signs between words that are no names, unless a page has them
_SAME_LANGUAGE = 6  # stop words of the question's language that the pages have
_HOW_TO = any_case(
    r"\bhow (?:(?:do|can|could|should|would|must) (?:i|you|we|one)|to)\b|\bsteps\b|\bway to\b"
    r"|\A\W*(?:change|print|find|set|install|remove|delete|add|connect|enable|disable|turn|open|create|configure|"
    r"restore|reset|import|export|copy|move|rename|share|start|stop|undo|convert|switch|save)\b"
    r"|\bwhat (?:now|next|to do)\b|\bwhat (?:do|can|could|should|must|shall) (?:i|we|you) do\b"
    r"|\bwie \w+ (?:ich|man|wir)\b|\bcomment\b|\bcómo\b|\bcome (?:si|posso|faccio)\b|\bhoe (?:kan|moet)\b"
    r"|\blàm (?:thế nào|sao)\b|\bcách\b"
)
_DEFINES = any_case(r"\W*(?:what|who)(?:['’]s| (?:is|are|was|were|does)\b)")
_HOW_MANY = any_case(r"\b(?:how many|bao nhiêu|mấy) (\w+)")
_PERCENT = any_case(r"%|\bper ?cent(?:age)?\b|\bphần trăm\b")
_EXTENT = any_case(r"\bhow (?:long|far|tall|high|heavy|wide|deep)\b")
_PRICE = any_case(
    r"\b(?:how much|what (?:do|does|did|would|is|are)(?: the)?)\b.*\b(costs?|pay|paid|charges?|price|fee)s?\b"
    r"|\bhow much (?:(?:is|are|was|were) (?:it|an?|one|the)\b(?! (?:max|min|limit))|money\b)"
)
_CURRENT = any_case(
    r"\bcurrent(?:ly)?\b|(?<!\bwhat )\bnow(?:adays)?\b|\bat (?:the|this) moment\b|\b(?:today|these days|presently)\b"
)
_UTMOST = any_case(r"\bthe (?:very )?(?:most|least|best|worst)\b(?! (?:of|recent)\b)")
# The number of a row: "the fifth relic".
_ORDINALS = {
    word: str(number)
    for number, word in enumerate(
        "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),  # noqa: SIM905
        2,
    )
}
# An age says who asks, and is no name: "for my 10 year old daughter".
_PRONOUN = any_case(r"\b(it|this|that|he|she|him|her|they|them|those|these)\W*\Z")
_A_BIT = any_case(r"\ba (?:little )?bit\b(?! of\b)")
_AGE = any_case(r"\b[0-9]{1,3}[ -]years?[ -]old\b")
_WHICH = any_case(r"\b(?:which|what) (\w+)")
# Digits and underscores make a token a name: tcp_fin_timeout.
_NO_WORD, _LETTER = re.compile("[0-9_]"), re.compile(r"[^\W\d_]")
_COMPARES = any_case(r"\b(?:differ\w*|compare\w*|comparison|versus|vs|than|khác (?:nhau|gì)|so sánh)\b")
_SIDES = any_case(
    r"\bbetween (.+?) and (.+?)\W*\Z|\A(?:what is |which is better,? )?(.+?) (?:vs\.?|versus) (.+?)\W*\Z"
    r"|\bhow (?:is|are|do|does) (.+?) differ(?:ent)? from (.+?)\W*\Z|\bgiữa (.+?) và (.+?)\W*\Z"
)
_WHERE = any_case(r"\bwhere\b|\b(?:ở|tại|đến|từ) đâu\b|\bnơi nào\b|\bwo\b|\boù\b|\bdónde\b")
_NEEDS = any_case(
    r"\b(?:do|does|did|will|would) (?:\w+ ){1,2}need\b"
    r"|\b(?:needed|required|should|must|minimum|have to|cần|phải|nên)\b"
)
_DENIES = any_case(r"\b(?:no|not|non|without|\w+n['’]t)\b")
_WHY = any_case(r"\bwhy\b|\breasons?\b|\b(?:tại|vì) sao\b|\bwarum\b|\bpourquoi\b|\bpor qué\b")
# Several pages may answer "Which languages are …?", "languages made by …", "name three …", not "Which pets may I keep?"
_LISTS = any_case(
    r"\A\W*(?:(?:can you |please )?(?:list|name)\b|(?:which|what) (?:(?!is|was|does|has|this)\w+ ){0,2}?"
    r"(?!(?:is|was|does|has|this)\b)\w{2,}s (?!(?:is|does|was|has|me|us|you|the|an?|my|your|it|how|what|who)\b)"
    r"(?!(?:can|could|may|must|should) (?:an?|the|i|we|you|one|my|your|our)\b)"
    r"|(?:(?:some|other|examples? of) )?(?!this|does|what)\w{3,}s (?:made|created|written|designed|based|named|"
    r"invented|with|that|by)\b)"
)
_CODE = any_case(
    r"\b(?:hello,? world|snippet|source code|(?:code|program|script) (?:to|that|for|which)|example (?:program|code))\b"
    r"|\b(?:write|show|give|print|look like) .*\b(?:programs?|code|script|quine|machine|numbers|text)\b"
    r"|\A(?!.*\b(?:what|which|who|when|where|why|how|is|are|was|does|did)\b).*\b(?:program|code|script|quine)\W*\Z"
)
_SEVERAL = any_case(r"\b(?:and|or|vs|versus|both|between|same|differ\w*|than)\b")
# Words that ask, and say nothing about what is asked for.
_ASKING = frozenset(
    map(
        stem,
        """
        name named call called mean meaning stand kind sort type wiki page tell describe give happen exactly work way
        look like actually originally many much number count year date time long old one large newer big size
        show please guy man woman person someone whose
        differ difference same both vs versus between hi hello hey thank thanks
        add now new today currently good purpose people thing something someone mistake per
        anything everything stuff anymore anyway lot want possible able ever maybe really
        let take get keep
        lâu xa thế nào
        """.split(),  # noqa: SIM905
    )
)


class ReadQuestion(Struct, frozen=True):
    """The stems of a question as the evidence writes them; ``names`` are among ``words``."""

    names: dict[str, str]  # with the words that they are the stems of
    words: frozenset[str]
    # The stems of two words that pages may write as one: file name, filename.
    joined: dict[str, frozenset[str]]
    pairs: frozenset[tuple[str, str]]  # of syllables side by side, in Vietnamese: words of two or more
    kind: Kind | None
    refers: str  # the pronoun of a question that may be about what was said before, or ""
    by_person: bool  # it asks for a thing by a person: "which file tells who wrote it"
    native: bool  # it is in English or in the pages' language
    counts: str  # the stem of what it asks the number of, or ""
    percent: bool
    extent: bool  # it asks how long, far, high or heavy something is
    price: frozenset[str]  # the stem of the word that asks for one
    current: bool  # it asks how things are now
    utmost: bool  # it asks for the most or the best, not for the best way
    which: str  # the stem of the word behind "which" or "what", or ""
    how_to: bool  # it asks for instructions
    defines: bool  # it asks what something is
    several: bool  # its names may be on different pages, or be no names: German nouns
    compares: bool  # it asks how things differ
    sides: tuple[frozenset[str], ...]  # the stems of the two things that it compares
    why: bool  # it asks for a reason
    where: bool  # it asks for a place
    needs: bool  # it asks what must or should be
    denies: bool  # it asks about what is not, or is missing
    lists: bool  # several pages may answer it
    code: bool  # code may answer it
    signs: frozenset[str]  # that it asks about
    ordinals: frozenset[str]  # the numbers of the rows that it asks about: the fifth relic


def read_question(text: str, known: frozenset[str], ordinary: frozenset[str]) -> ReadQuestion:
    """Find names, other words and kind; a word that is not ``known`` may be another one, misspelt."""
    text = as_meant(_A_BIT.sub("", _AGE.sub("", text)))
    found = features(text, ordinary)
    words: set[str] = set()
    names: dict[str, str] = {}
    stops = stop_words(token.casefold() for token in tokens(text))
    foreign = stops - STOP_WORDS
    native = len(foreign & known) >= _SAME_LANGUAGE if foreign else True
    subject = found_subject.groups() if (found_subject := _SUBJECT.search(text)) else ()
    for token in tokens(text):
        if token.casefold() in stops or (token in _BETWEEN and token not in known):
            continue
        for word in _parts(token, known):
            if word in _ASKING or (word.isdigit() and token.isalpha()):
                continue
            (meant,) = meaning([_spelt(word, known)])
            words.add(meant)
            unknown = token in subject and not any(each == meant or synonymous(each, meant) for each in known)
            if meant not in known and not unknown and any(synonymous(each, meant) for each in known):
                continue  # "OK" where the pages have "approve"
            if unknown or stem(token) in found.names or _NO_WORD.search(token) or not _LETTER.search(token):
                names[meant] = token
    kind = kind_of(text, bool(foreign))
    several = len(names) > 1 and (bool(foreign) or _SEVERAL.search(text) is not None)
    many = _HOW_MANY.search(text)
    counts = next(iter(content_words(many[1])), "") if many and many[1].casefold() not in stops else ""
    which = stem(found_which[1]) if (found_which := _WHICH.search(text)) else ""
    sides = next((tuple(filter(None, found.groups())) for found in [_SIDES.search(text)] if found), ())
    how_to, defines = _HOW_TO.search(text) is not None, _DEFINES.match(text) is not None
    return ReadQuestion(
        names,
        frozenset(words),
        _joined(text, known),
        side_by_side(text) if VIETNAMESE.search(text.casefold()) else frozenset(),
        kind,
        found_pronoun[1] if (found_pronoun := _PRONOUN.search(text)) else "",
        kind is None and _RELATIVE_WHO.match(text) is not None,
        native,
        counts,
        kind == "number" and _PERCENT.search(text) is not None,
        kind == "number" and _EXTENT.search(text) is not None,
        frozenset(meaning([stem(price[1] or "cost")])) if (price := _PRICE.search(text)) else frozenset(),
        _CURRENT.search(text) is not None,
        _UTMOST.search(text) is not None and not how_to,
        which,
        how_to,
        defines,
        several,
        compares=_COMPARES.search(text) is not None,
        sides=tuple(meaning(content_words(side)) for side in sides),
        why=_WHY.search(text) is not None,
        where=_WHERE.search(text) is not None,
        needs=_NEEDS.search(text) is not None,
        denies=_DENIES.search(text) is not None,
        lists=_LISTS.match(text) is not None,
        code=_CODE.search(text) is not None,
        signs=signs(text),
        ordinals=frozenset(_ORDINALS[word] for word in map(str.casefold, tokens(text)) if word in _ORDINALS),
    )


def _joined(text: str, known: frozenset[str]) -> dict[str, frozenset[str]]:
    """The stems of neighbouring words by the one that pages write for both."""
    found = {
        stem(f"{one}{other}"): meaning([stem(one), stem(other)]) for one, other in pairwise(tokens(text))
    }
    return {word: both for word, both in found.items() if word in known}


def side_by_side(text: str) -> frozenset[tuple[str, str]]:
    """The stems of words between which no other stands."""
    found = [content_words(token) for token in tokens(text)]
    return frozenset((one[0], other[0]) for one, other in pairwise(found) if one and other)


def kind_of(text: str, foreign: bool = False) -> Kind | None:
    kinds = [*(_FOREIGN_KINDS.items() if foreign else ()), *_KINDS.items()]
    found = next((kind for kind, asks in kinds if asks.search(text)), None)
    return None if found == "person" and _RELATIVE_WHO.match(text) else found


def translated(question: ReadQuestion, terms: ReadQuestion, known: frozenset[str]) -> ReadQuestion:
    """A question in another language than the pages', with the search terms for those words that no page has.

    A word that only a term has may be a slip of the model, and counts if a page has it.
    """
    usable = known | question.words
    names = {name: token for name, token in question.names.items() if name in known}
    names |= {name: token for name, token in terms.names.items() if name in usable}
    words = question.words & known | terms.words & usable
    return msgspec.structs.replace(question, names=names, words=words or question.words)


def _parts(token: str, known: frozenset[str]) -> list[str]:
    """The token's stems; those of the two words that the pages write it in: antivirus, anti-virus."""
    words = content_words(token)
    if words and known.isdisjoint(words) and token.isalpha():
        for at in range(_SHORTEST_PART, len(token) - _SHORTEST_PART + 1):
            parts = content_words(f"{token[:at]} {token[at:]}")
            if len(parts) > 1 and known.issuperset(parts):
                return parts
    return words


def _spelt(word: str, known: frozenset[str]) -> str:
    if len(word) < _SHORTEST_MISSPELT or word in known or word in SAME_AS or word in STANDING_FOR_OTHERS:
        return word
    similar = [each for each in {*known, *SAME_AS, *STANDING_FOR_OTHERS} if each[:1] == word[:1]]
    return next(iter(get_close_matches(word, similar, 1, _SIMILAR)), word)


def same_word(word: str, other: str) -> bool:
    """Whether two stems are one word, with another ending or without marks: extend, extension; Temür, Temur."""
    shorter = min(len(word), len(other))
    if not word.isascii() and shorter >= _SHORTEST_MISSPELT:
        word = "".join(each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each))
    return word == other or (shorter >= _SHORTEST_ROOT and word[: shorter - 1] == other[: shorter - 1])
