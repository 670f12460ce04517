"""Words that say nothing about what a question is about, in English and in the language that the question is in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import NamedTuple

from gateway.base.patterns import any_case

STOP_WORDS = frozenset(
    """
    a about am an and any are as at be been but by can could did do does explain find for from get
    had has have how i if in into is it its itself know may me must my of on or our please say
    says see she he should show so tell than that the their them then there these they this those to
    us want was we were what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)


class _Language(NamedTuple):
    """``telling`` words mean nothing in English, so two of them identify the language; ``others`` may."""

    telling: frozenset[str]
    others: frozenset[str]


def _language(telling: str, others: str) -> _Language:
    return _Language(frozenset(telling.split()), frozenset(others.split()))


_TELLING_WORDS = 2
VIETNAMESE = re.compile("[ăơưạ-ỹ]")  # small letters of no other of these languages
# Without its marks.
VIETNAMESE_SYLLABLE = any_case(
    r"(?:ngh?|[cgknptk]h|tr|gi|qu|[bcdghklmnprstvx])?[aeiouy]{1,3}(?:ch|ng|nh|[cmnpt])?"
)
# Words typed without marks, most of them in no English text.
_UNMARKED = frozenset(
    re.findall(
        r"\w+",
        "biet chao cua cung dang dich duoc gi gio hom khong lam minh muon nao ngay nghe nguoi nhac nhung roi thich "
        "tieng toi tuoi vay viet xin",
    )
)
_UNMARKED_BESIDE = frozenset({"ban", "la", "mai", "sang", "sao", "ten"})
_WORD = re.compile(r"[^\W\d_]+")
_MOST = 2 / 3  # of the words: a name or a quotation is no language
_LANGUAGES = (
    _language(
        """
        aus auf bei das dass der dem des ein eine einem einen einer es für gibt hat haben heißt ist mit nach nicht oder
        sich sind über und vom von warum wann welche welchem welchen welcher welches wer wessen wie wird wo wofür woher
        wozu wurde wurden zu zum zur bedeutet
        """,
        "am an den die hieß im in man so war waren was werden",
    ),
    _language(
        """
        au aux avec ce cette dans depuis des du elle est et été il la le les leur lequel laquelle où par pourquoi quand
        que quel quelle quelles quels qui quoi signifie sont sous sur une était
        """,
        "a ans combien comment de en elles ils on ont pour son un",
    ),
    _language(
        """
        como cómo cuál cuáles cuándo cuánto cuántos del desde dónde el ella es está están fue la las los por porqué qué
        quién quiénes se significa su sus una unos y
        """,
        "a con de en era ha hay lo para que son un",
    ),
    _language(
        """
        che chi cosa cui da dal della delle dello dei di dove è gli il la le nel nella perché quale quali quando quanti
        quanto si significa sono sul sulla una uno
        """,
        "a come con era ha in per lo stata stato un",
    ),
    _language(
        """
        aan bij dat de deze een en er heeft hebben het hoe hoeveel is met naar niet om op te van voor waar waarom
        betekent wanneer wat welk welke werd wie worden wordt zijn zij
        """,
        "die door in of over uit was",
    ),
    _language(
        """
        ao aos à às como da das do dos é em foi foram na nas nos onde os ou pela pelo por porque qual quais quando
        quantos que quem são se seu significa sua um uma
        """,
        "a as de e era no o para ser",
    ),
    _language(
        """
        ai bao bằng biết các cái cho có của cũng do đã đang đâu đây để được gì giờ hãy hay hoặc họ khi không là làm
        lúc mà mấy mỗi một nào này nếu nghĩa người nhiêu những như nơi ở ra rất sao sẽ tại thế thì theo tôi trên trong
        từ và vào về vì với đó
        """,
        "khác năm",
    ),
)


def plain(word: str) -> str:
    """The word without diacritics, as the index has it."""
    bare = (c for c in unicodedata.normalize("NFD", word.casefold()) if not "\u0300" <= c <= "\u0331")
    return unicodedata.normalize("NFC", "".join(bare)).replace("đ", "d")


def speaks(languages: Collection[str], text: str) -> bool:
    """Whether a model that converses in ``languages`` alone understands a text; of any language if there are none.

    Only Vietnamese is told from others: by its syllables, with a mark on one of them or two words that it alone has.
    """
    if not languages or "vi" in languages:
        return True
    words = _WORD.findall(text)
    if text.isascii():
        said = {word.lower() for word in words}
        if not said & _UNMARKED or len(said & (_UNMARKED | _UNMARKED_BESIDE)) < _TELLING_WORDS:
            return True
    return sum(VIETNAMESE_SYLLABLE.fullmatch(plain(word)) is not None for word in words) <= _MOST * len(words)


def stop_words(words: Iterable[str]) -> frozenset[str]:
    """The stop words of English, and those of another language if the lower-case ``words`` are in that one."""
    said = frozenset(words)
    best = max(_LANGUAGES, key=lambda language: len(said & language.telling))
    own = len(said & best.telling - STOP_WORDS)
    if vietnamese := sum(VIETNAMESE.search(word) is not None for word in said):
        best, own = _LANGUAGES[-1], own + vietnamese
    if own >= _TELLING_WORDS and own > len(said & STOP_WORDS - best.telling - best.others):
        return STOP_WORDS | best.telling | best.others
    return STOP_WORDS
