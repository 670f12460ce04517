"""A run as a file: gone on with when it is of the same kind, refused when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.base.errors import ConfigurationError
from gateway.evaluation.kept import check_writable, keep_run, read_run, rows_so_far
from gateway.evaluation.questions import Question
from gateway.evaluation.report import Run
from gateway.evaluation.score import Row

QUESTIONS = [Question(id=name, category="x", text=name) for name in "abc"]


def row(name: str, **fields: Any) -> Row:
    return Row(id=name, category="x", text=name, answerable=True, **fields)


def run(*rows: Row, **fields: Any) -> Run:
    given: dict[str, Any] = {"version": "1", "model": "m", "question_set": "s", "started_at": 0.0}
    return Run(**given | fields, rows=list(rows))


def test_a_run_goes_on_with_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    assert rows_so_far(path, run(), QUESTIONS) == []
    keep_run(path, run(row("a", answer="yes"), row("b", error="deadline_exceeded: no answer")))
    assert rows_so_far(path, run(), QUESTIONS) == [row("a", answer="yes")]  # what failed is asked again
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model": "other"}, "differs in: model;"),
        ({"weights": "1f"}, "differs in: weights;"),
        ({"prompts": {"answer": 2}}, "differs in: prompts;"),
        ({"settings": {"pages": 1}}, "differs in: settings;"),
        ({"question_set": "t"}, "differs in: question set;"),
    ],
)
def test_a_run_of_another_kind_is_refused(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    path = tmp_path / "run.json"
    keep_run(path, run(row("a")))
    with pytest.raises(ConfigurationError, match=says):
        rows_so_far(path, run(**changed), QUESTIONS)


def test_a_run_over_more_questions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    keep_run(path, run(row("z")))
    with pytest.raises(ConfigurationError, match="more questions"):
        rows_so_far(path, run(), QUESTIONS)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": 3}', b"\xff\xfe"])
def test_what_is_no_run_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="not the file of a run"):
        read_run(path)


def test_a_place_that_cannot_be_written_is_refused_before_the_first_question(tmp_path: Path) -> None:
    check_writable(tmp_path / "run.json")
    for path in (tmp_path, tmp_path / "none" / "run.json"):
        with pytest.raises(ConfigurationError, match="cannot write the run"):
            check_writable(path)


def test_a_kept_run_is_json(tmp_path: Path) -> None:
    keep_run(tmp_path / "run.json", run(row("a")))
    assert msgspec.json.decode((tmp_path / "run.json").read_bytes())["rows"][0]["id"] == "a"
