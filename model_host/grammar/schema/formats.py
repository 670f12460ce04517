"""The values of `format` that are enforced, as patterns. Each allows texts of the format, not always all of them."""

from __future__ import annotations

from functools import cache

from model_host.grammar.gbnf.syntax import Node
from model_host.grammar.schema.pattern import parse_pattern

_YEAR = "[1-9][0-9]{3}"
_LEAP_YEAR = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_DATE = f"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_HOUR_AND_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_HOUR_AND_MINUTE})"
_N = "[0-9]{1,4}"
_DAYS = f"(?:{_N}Y(?:{_N}M(?:{_N}D)?)?|{_N}M(?:{_N}D)?|{_N}D)"
_HOURS = f"T(?:{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S)"
_LABEL = "[a-z][a-z0-9]{0,11}(?:-[a-z0-9]{1,12}){0,2}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_DOMAIN = r"(?:[a-z0-9]{1,20}\.){1,3}[a-z]{2,12}"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_URL_TEXT = "[A-Za-z0-9._~!$&'()*+,;=:@-]"

_FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P(?:{_DAYS}(?:{_HOURS})?|{_HOURS}|{_N}W)",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "email": rf"[A-Za-z0-9_]{{1,20}}(?:[.+-][A-Za-z0-9_]{{1,20}}){{0,2}}@{_DOMAIN}",
    "hostname": _HOST,
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "ipv6": "[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}",
    "uri": rf"https?://{_DOMAIN}(?::[1-9][0-9]{{0,3}})?(?:/{_URL_TEXT}*)*(?:\?{_URL_TEXT}*)?(?:#{_URL_TEXT}*)?",
}
NAMES = tuple(_FORMATS)


@cache
def parse_format(name: str) -> Node | None:
    """What a string of this format is made of; None for a format that is not known."""
    return parse_pattern(f"^(?:{_FORMATS[name]})$") if name in _FORMATS else None
