"""A run as a file: written after every question, read to go on with it or to compare it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gateway.errors import ConfigurationError, HearthError
from gateway.evaluation.questions import Question
from gateway.evaluation.report import Run, differences
from gateway.evaluation.score import Row


def check_writable(path: Path) -> None:
    """Raises ConfigurationError when nothing can be kept at ``path``: better before the first question than after."""
    folder = path.parent
    if not folder.is_dir():
        raise ConfigurationError(f"cannot keep the run in {path}: there is no folder {folder}")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"cannot keep the run in {path}: it is no file that can be written")


def read_run(path: Path) -> Run:
    """The run in a file. Raises ConfigurationError when there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"{path} is no kept evaluation: {error}") from None


def keep_run(path: Path, run: Run) -> None:
    """Write the run; whoever reads sees the old one or the new one, never a half. Raises HearthError."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(msgspec.json.encode(run) + b"\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise HearthError(f"cannot keep the run in {path}: {error.strerror}", status=503) from None


def rows_so_far(path: Path, run: Run, questions: Sequence[Question]) -> list[Row]:
    """Rows of an earlier run into the same file; what failed in it is to be asked again.

    Raises ConfigurationError when that run was of another kind than ``run``, or asked other questions.
    """
    if not path.exists():
        return []
    earlier = read_run(path)
    if changed := differences(earlier, run):
        raise ConfigurationError(
            f"{path} is of a run that differs in: {', '.join(changed)}; choose another file"
        )
    wanted = {question.id for question in questions}
    others = [row.id for row in earlier.rows if row.id not in wanted]
    if others:
        raise ConfigurationError(f"{path} is of a run with more questions ({others[0]}); choose another file")
    return [row for row in earlier.rows if row.error is None]
