"""Run files: written after every question, read to resume or compare a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gateway.base.errors import ConfigurationError, HearthError
from gateway.evaluation.questions import Question
from gateway.evaluation.report import Run, differences
from gateway.evaluation.score import Row


def check_writable(path: Path) -> None:
    """Raise ConfigurationError, before the first question, if no run can be written to ``path``."""
    folder = path.parent
    if not folder.is_dir():
        raise ConfigurationError(f"cannot write the run to {path}: there is no folder {folder}. Create it")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"cannot write the run to {path}: name a file in a writable folder")


def read_run(path: Path) -> Run:
    """Read a run. Raises ConfigurationError if the file holds none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"{path} is not the file of a run: {error}") from None


def keep_run(path: Path, run: Run) -> None:
    """Replace the file atomically. Raises HearthError."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(msgspec.json.encode(run) + b"\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise HearthError(f"cannot write the run to {path}: {error.strerror}", status=503) from None


def rows_so_far(path: Path, run: Run, questions: Sequence[Question]) -> list[Row]:
    """Return the answered rows of an earlier run in the file; failed questions are asked again.

    Raises ConfigurationError if that run differs from ``run`` in more than its rows, or asked other questions.
    """
    if not path.exists():
        return []
    earlier = read_run(path)
    if changed := differences(earlier, run):
        raise ConfigurationError(
            f"{path} holds a run that differs in: {', '.join(changed)}; choose another file"
        )
    wanted = {question.id for question in questions}
    others = [row.id for row in earlier.rows if row.id not in wanted]
    if others:
        raise ConfigurationError(f"{path} holds a run with more questions ({others[0]}); choose another file")
    return [row for row in earlier.rows if row.error is None]
