from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.redact import redact, redact_value

SECRETS = [
    ("token hk_" + "aB3-" * 10 + " end", "token [redacted] end"),
    ("sk-proj-" + "x1" * 20, "[redacted]"),
    ("sk-ant-api03-" + "x1_-" * 20, "[redacted]"),
    ("hf_" + "aZ9" * 11, "[redacted]"),
    ("ghp_" + "a1" * 18, "[redacted]"),
    ("AKIA" + "ABCD1234" * 2, "[redacted]"),
    ("Authorization: Bearer abc.def-ghi_123", "Authorization: Bearer [redacted]"),
    ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
    ("https://user:pa%20ss@example.org/x", "https://user:[redacted]@example.org/x"),
    ("postgresql+psycopg://:secret@db/x", "postgresql+psycopg://:[redacted]@db/x"),
    ('{"api_key": "abcdef123"}', '{"api_key": "[redacted]"}'),
    ("PASSWORD=hunter2hunter2\nnext", "PASSWORD=[redacted]\nnext"),
    (
        "x\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\ny",
        "x\n[redacted]\ny",
    ),
    ("-----BEGIN PRIVATE KEY-----\nnever ends", "[redacted]"),
    ("use Zx81kQ0vLm5tYb7RwNc3HsJd9PgFuA2e now", "use [redacted] now"),
]


@pytest.mark.parametrize(("text", "clean"), SECRETS)
def test_secrets_go(text: str, clean: str) -> None:
    assert redact(text) == (clean, 1)
    assert redact(clean) == (clean, 0), "redacting twice changes nothing"


@pytest.mark.parametrize(
    "text",
    [
        "Befunge was created by Chris Pressey in 1993.",
        "https://esolangs.org/wiki/Befunge?a=b:c@d",
        "the bearer of bad news",
        "+++++[>+++++<-]>. sk-short hk_x",
        "password: none",
        "-----BEGIN CERTIFICATE-----",
        "time 12:30 user@example.org",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_values_keep_their_shape() -> None:
    secret = "hk_" + "a" * 43
    assert redact_value({"a": [secret, 1, None, {"b": secret}], "c": 2.5}) == (
        {"a": ["[redacted]", 1, None, {"b": "[redacted]"}], "c": 2.5},
        2,
    )


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    redact(text)


@pytest.mark.parametrize(
    "piece",
    ["a", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "Bearer ", "http://a:", "sk-", "eyJa.", "password= "],
)
def test_hostile_text_is_quick(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.perf_counter()
    redact(text)
    assert time.perf_counter() - start < 5
