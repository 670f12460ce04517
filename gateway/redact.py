"""Secrets out of text: what is stored or logged never carries a key, a password or a private key.

What counts as a secret is data: ``gateway/redact.toml``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

MARK = "[redacted]"
S = TypeVar("S", bound=Struct)


class _Secret(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    pattern: str
    replace: str = MARK


class _Random(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: str
    least_bits: float  # of entropy, a character


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    secret: list[_Secret]
    random: _Random


_DOCUMENT = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=_Document)
_PATTERNS = [(re.compile(each.pattern), each.replace) for each in _DOCUMENT.secret]
_RANDOM = re.compile(_DOCUMENT.random.pattern)


def redact(text: str) -> tuple[str, int]:
    """The text with every recognized secret replaced by ``[redacted]``, and how many there were."""
    total = 0
    for pattern, replacement in _PATTERNS:
        text, count = pattern.subn(replacement, text)
        total += count
    text, count = _without_random(text)
    return text, total + count


def _without_random(text: str) -> tuple[str, int]:
    """``text`` without runs that look drawn at random, and how many there were."""
    found = 0

    def judge(match: re.Match[str]) -> str:
        nonlocal found
        if not _looks_random(match[0]):
            return match[0]
        found += 1
        return MARK

    return _RANDOM.sub(judge, text), found


def _looks_random(run: str) -> bool:
    """Capitals, small letters and digits, with a high Shannon entropy of its characters."""
    if not (any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))):
        return False
    shares = [count / len(run) for count in Counter(run).values()]
    return -sum(share * math.log2(share) for share in shares) >= _DOCUMENT.random.least_bits


def without_secrets(value: S) -> S:
    """:func:`redact` on every text in a struct, however deep."""
    clean, _ = redact_value(value)
    return cast("S", clean)


def redact_value(value: Any) -> tuple[Any, int]:
    """:func:`redact` on every string inside structs, lists and dicts (not on keys); other values stay as they are."""
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
