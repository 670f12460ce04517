"""Vietnamese requests and times as the wordings have them: with marks, and with numbers in digits. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from gateway.base.calendar import DAYS_VI, NUMBERS_VI
from gateway.base.patterns import any_case

_ONES = ("", *NUMBERS_VI[1:10])
_ONES_OF_TENS = {"một": ("một", "mốt"), "bốn": ("bốn", "tư"), "năm": ("năm", "lăm", "nhăm")}
_PARTS = ("sáng", "trưa", "chiều", "tối", "đêm")
PART_VI = f"(?:{'|'.join(_PARTS)})"
_DAY = rf"(?:mai|nay|mốt|{'|'.join(DAYS_VI)})"


def _number_words() -> Iterator[tuple[str, int]]:
    """The words of 1 to 59, with the forms that ones have behind tens."""
    yield from (("bẩy", 7), ("tư", 4))
    for number in range(1, 60):
        tens, ones = divmod(number, 10)
        ten = ("", "mười", *(f"{each} mươi" for each in _ONES[2:6]))[tens]
        for one in _ONES_OF_TENS.get(_ONES[ones], ()) if tens else ():
            yield f"{ten} {one}", number
        yield f"{ten} {_ONES[ones]}".strip(), number


_NUMBERS = dict(_number_words())
_WORD = rf"(?:{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_NUMBER = rf"(?:\d{{1,2}}|{_WORD})"


_ME = ("tôi", "mình", "tui", "em", "anh", "chị")
# Phrases that are understood without marks, too.
_PHRASES = (
    *(f"{part} {day}" for part in _PARTS for day in ("mai", "nay", "mốt", *DAYS_VI)),
    *(
        f"{day}{which}"
        for day in DAYS_VI
        for which in ("", " này", " tới", " tuần này", " tuần tới", " tuần sau")
    ),
    *(f"{call} {me}" for call in ("đánh thức", "nhắc") for me in _ME),
    *(f"{call} {me} dậy" for call in ("đánh thức", "gọi", "kêu") for me in _ME),
    *(  # noqa: SIM905 - a list of quoted words is harder to read
        "ngày mai|ngày mốt|ngày kia|hôm nay|bữa nay|bữa ni|đầu giờ chiều|cuối ngày|báo thức|hẹn giờ|bấm giờ|đếm ngược|"
        "đặt báo thức|cài báo thức|cài chuông|đặt chuông|đặt lời nhắc|tạo lời nhắc|nhớ việc|nhớ nhắc|nhớ báo|nhắc nhở|"
        "nhắc tớ|nhớ nhắc tớ|nhớ báo tớ|hẹn giờ tới|hẹn giờ đến|giùm tui|giùm tôi|dùm|hộ tôi"
    ).split("|"),
)


def _unmarked(text: str) -> str:
    plain = unicodedata.normalize("NFD", text.replace("đ", "d").replace("Đ", "D"))
    return "".join(each for each in plain if not unicodedata.combining(each))


_MARKED = {_unmarked(phrase): phrase for phrase in _PHRASES}
_UNMARKED = any_case(rf"\b(?:{'|'.join(sorted(_MARKED, key=len, reverse=True))})\b")
_UNITS = {_unmarked(word): word for word in ("giờ", "phút", "tiếng", "nữa", *_PARTS)}
# "8 gio toi di hoc" may be "8 giờ tôi đi học".
_UNMARKED_SPAN = any_case(
    r"(?<=\d) ?(?P<unit>gio|phut|tieng)\b(?P<later> nua\b)?(?P<part> (?:sang|trua|chieu|dem|toi(?= mai\b|\s*$))\b)?"
)
_UNMARKED_DATE = any_case(r"\bngay (?P<day>\d{1,2}) thang (?=\d)")
_UNMARKED_AT = any_case(r"\bluc (?=\d)")


def _as_digits(found: re.Match[str]) -> str:
    return str(_NUMBERS[" ".join(found[0].lower().split())])


def _number(words: str) -> int:
    return int(words) if words.isdigit() else _NUMBERS[" ".join(words.lower().split())]


def _half(found: re.Match[str]) -> str:
    number = _number(found["number"])
    return f"{number * 60 + 30} phút" if found["unit"] == "tiếng " else f"{number} giờ 30"


def _before_hour(found: re.Match[str]) -> str:
    """ "9 giờ kém 10" is 8:50."""
    return f"{_number(found['number']) - 1} giờ {60 - _number(found['minutes'])}"


_PLAINER: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (any_case(r"^(?P<asks>\W*(?:bạn )?có thể\b.*?) (?:được )?không\W*$"), r"\g<asks>"),
    (any_case(r"\bbữa (?:nay|ni)\b"), "hôm nay"),
    (any_case(r"\bnửa (?:tiếng|giờ)\b"), "30 phút"),
    (
        any_case(
            rf"\b(?<!thứ )(?P<number>{_NUMBER}) (?P<unit>giờ |tiếng )?rưỡi(?= {PART_VI}\b|\s*$| (?:nữa|ngày|hôm|thứ)\b)"
        ),
        _half,
    ),
    (
        any_case(rf"\b(?<!thứ )(?P<number>{_NUMBER}) giờ kém (?P<minutes>{_NUMBER})(?: phút)?\b"),
        _before_hour,
    ),
    (any_case(rf"\b(?<!thứ ){_WORD}(?= (?:giờ|tiếng|phút|giây)\b| (?:ngày|tuần|tháng) nữa\b)"), _as_digits),
    # "At 8 two people come" has no minutes.
    (any_case(rf"(?<=\d giờ ){_WORD}(?= phút\b| {PART_VI}\b|\s*$)"), _as_digits),
    (any_case(r"(?<=\d giờ )(?P<minutes>\d{1,2}) phút\b"), r"\g<minutes>"),
    (any_case(rf"(?<=ngày ){_WORD}(?= tháng {_NUMBER}\b)"), _as_digits),
    (any_case(rf"(?<=\d tháng ){_WORD}\b(?! (?:giờ|tiếng)\b)"), _as_digits),
    (
        any_case(r"(?P<span>\d+ (?:giờ|tiếng|phút))(?: nữa)? (?:kể từ|tính từ|từ) (?:bây giờ|lúc này|giờ)\b"),
        r"\g<span> nữa",
    ),
    (any_case(r"\b(?:trong|sau)(?: (?:thời gian|khoảng))? (?=\d+ (?:giờ|tiếng|phút)\b)"), "sau "),
    (any_case(rf"\bđầu giờ (?P<part>{PART_VI})(?= {_DAY}\b)"), r"\g<part>"),
    (any_case(rf"\bđầu giờ (?P<part>{PART_VI})\b"), r"\g<part> nay"),
    (any_case(rf"\bngày (?=(?:{'|'.join(DAYS_VI)})\b)"), ""),
    (any_case(r"\bcuối ngày(?: (?:hôm )?nay)?\b"), "chiều nay"),
    (any_case(rf"(?<=[\dhờ]) (?P<part>{PART_VI}) nay\b"), r" \g<part> hôm nay"),
)
# Of the regions, and typed without marks: a hen stays in English.
_PARTICLES = any_case(r"(?: (?:hỉ|hi|hen|nghen|voi|với|nhe|nhá|nha))+(?=\W*$)")
_HOUR = any_case(r"\d\s*(?:giờ|h\b|h\d|:\d)")
_NOON = any_case(rf"\btrưa (?={_DAY}\b)")


def in_plain_words(text: str) -> str:
    """The text with the marks of its times and requests, and with its times in digits; other texts as they are."""
    text = unicodedata.normalize("NFC", text)
    if text.isascii():
        text = _with_marks(text)
    if text.isascii():
        return text
    text = _PARTICLES.sub(" nhé", text)
    for pattern, plain in _PLAINER:
        text = pattern.sub(plain, text)
    return text if _HOUR.search(text) else _NOON.sub("12 giờ trưa ", text)


def _with_marks(text: str) -> str:
    text = _UNMARKED_SPAN.sub(
        lambda found: "".join(f" {_UNITS[each.strip().lower()]}" for each in found.groups() if each), text
    )
    text = _UNMARKED_AT.sub("lúc ", _UNMARKED_DATE.sub(r"ngày \g<day> tháng ", text))
    return _UNMARKED.sub(lambda found: _MARKED[found[0].lower()], text)
