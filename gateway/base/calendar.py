"""Numbers, days and months in words, in English and Vietnamese."""

from __future__ import annotations

NUMBERS = (  # noqa: SIM905 - a list of quoted words is harder to read
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
NUMBERS_VI = "không một hai ba bốn năm sáu bảy tám chín mười".split()  # noqa: SIM905
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
DAYS_VI = ("thứ hai", "thứ ba", "thứ tư", "thứ năm", "thứ sáu", "thứ bảy", "chủ nhật")
MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
MONTH = rf"(?:{'|'.join(f'{name}|{name[:3]}' for name in MONTHS)}|sept)"


def month_number(name: str) -> int:
    """1 for "January", "jan" and whatever else begins so."""
    return next(number for number, month in enumerate(MONTHS, 1) if month[:3] == name.casefold()[:3])
