"""Secrets out of text: what is stored or logged never carries a key, a password or a private key."""

from __future__ import annotations

import re
from typing import Any

MARK = "[redacted]"

# Every repetition is bounded or cannot overlap with what follows it, so matching stays linear on any text.
_PATTERNS: list[tuple[re.Pattern[str], str]] = [
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        MARK,
    ),
    # user:password@ in a URL; the user stays.
    (
        re.compile(
            r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{1,20}://[^\s/:@?#]{0,128}):(?!\[redacted\]@)[^\s/@]{1,256}@",
            re.I,
        ),
        rf"\1:{MARK}@",
    ),
    # Tokens that tell their kind: hearth, OpenAI and Anthropic, Hugging Face, GitHub, GitLab, Slack, npm,
    # AWS, Google, JSON web tokens.
    (
        re.compile(
            r"\b(?:hk_[\w-]{20,256}|sk-[\w-]{20,256}|hf_[A-Za-z0-9]{20,128}|gh[pousr]_[A-Za-z0-9]{20,256}"
            r"|github_pat_\w{20,256}|glpat-[\w-]{20,128}|xox[abeoprs]-[\w-]{10,256}|npm_[A-Za-z0-9]{36}"
            r"|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{35}"
            r"|eyJ[\w-]{10,2048}\.[\w-]{10,4096}\.[\w-]{10,2048})"
        ),
        MARK,
    ),
    (re.compile(r"\b(Bearer|Basic)(\s{1,8})[\w.~+/=-]{8,4096}", re.I), rf"\1\2{MARK}"),
    # name = value, as in configuration files, headers, JSON and query strings.
    (
        re.compile(
            r"((?:api[_-]?key|secret[_-]?(?:access[_-]?)?key|client[_-]?secret|access[_-]?token|auth[_-]?token"
            r"|refresh[_-]?token|password|passwd)[\"']?\s{0,8}[=:]\s{0,8}[\"']?)(?!\[redacted\])[^\s\"',;&]{6,1024}",
            re.I,
        ),
        rf"\1{MARK}",
    ),
]


def redact(text: str) -> tuple[str, int]:
    """The text with every recognized secret replaced by ``[redacted]``, and how many there were."""
    total = 0
    for pattern, replacement in _PATTERNS:
        text, count = pattern.subn(replacement, text)
        total += count
    return text, total


def redact_value(value: Any) -> tuple[Any, int]:
    """:func:`redact` on every string inside lists and dicts (not on keys); other values stay as they are."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        pairs = {key: redact_value(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, sum(count for _, count in pairs.values())
    if isinstance(value, list | tuple):
        items = [redact_value(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return value, 0
