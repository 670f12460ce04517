"""Log lines: structured, on stderr, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from gateway.config.settings import LogSettings
from gateway.telemetry import logs

KEY = "hk_" + "x" * 43


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Put the process' logging back as it was."""
    root = logging.getLogger()
    handlers, level, chosen = list(root.handlers), root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**chosen)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_secrets_are_replaced_wherever_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings(json=True))
    log = structlog.get_logger("test")
    log.warning(f"sent {KEY}", authorization="anything", headers={"x-api-key": "abc", "list": [KEY, 5]})
    try:
        raise ValueError(f"Bearer {KEY}")
    except ValueError:
        log.exception("failed")
    logging.getLogger("library").error("its message has %s", KEY)
    first, second, third = lines(capsys)
    assert first["authorization"] == first["headers"]["x-api-key"] == "[redacted]"
    assert first["headers"]["list"] == ["[redacted]", 5]
    assert "ValueError" in second["exception"]
    assert (third["logger"], third["level"]) == ("library", "error")
    assert KEY not in json.dumps([first, second, third])


def test_levels_and_request_ids(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings(level="warning", json=True))
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        structlog.get_logger("test").info("unseen")
        structlog.get_logger("test").warning("seen", number=3)
    (line,) = lines(capsys)
    assert (line["event"], line["number"], line["request_id"]) == ("seen", 3, "r-1")


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings())
    structlog.get_logger("test").info("request", status=200, key=KEY)
    text = capsys.readouterr().err
    assert "request" in text
    assert "status=200" in text
    assert KEY not in text


def test_endless_recursion_leaves_a_short_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings())

    def one(depth: int) -> int:
        return another(depth + 1)

    def another(depth: int) -> int:
        return one(depth + 1)

    try:
        one(0)
    except RecursionError:
        structlog.get_logger("test").exception("failed")
    text = capsys.readouterr().err
    assert len(text.splitlines()) < 150
    assert "lines left out" in text
    assert "test_endless_recursion_leaves_a_short_traceback" in text
    assert text.rstrip().endswith("maximum recursion depth exceeded")


@pytest.mark.parametrize("as_json", [True, False])
def test_lines_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    logs.configure(LogSettings(json=as_json))
    structlog.get_logger("test").info("request", path="/\x1b[2J\x9b31m\u202egnp.exe")
    text = capsys.readouterr().err
    assert "gnp.exe" in text and "u202e" in text
    assert not {"\x9b", "\u202e"} & set(text) and "\x1b[2J" not in text
