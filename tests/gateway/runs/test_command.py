"""`hearth tasks run` and what belongs to it, against a real gateway."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.cli.conftest import ROOT, run_command
from tests.gateway.cli.terminal import terminal
from tests.gateway.memory.test_kills import Gateway


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    gateway = Gateway(tmp_path / "data")
    yield gateway.url
    gateway.end(signal.SIGTERM)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "XDG_"))}
    own = {"HOME": str(tmp_path / "home"), "HEARTH_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    return {**kept, **own, "COLUMNS": "120", "TERM": "dumb"}


def test_run_watch_answer_pause_resume_and_cancel(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    def tasks(*arguments: str, status: int = 0) -> str:
        done = run_command(environment, tmp_path, "tasks", "--url", url, *arguments)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    shown = tasks("run", "Remember that my bicycle is green, then notify me that it is kept")
    assert re.fullmatch(
        r"T-\d{8}-01 Remember .*\n(  \[>\] .*\n)*  \[x\] remember: my bicycle is green\n(  \[>\] .*\n)*"
        r"  \[x\] notify: it is kept\ntold: it is kept\n",
        shown,
    ), shown
    shown = tasks("run", "A colour", "--step", "ask: Which colour?", "--step", "notify: {{1}}")
    task = shown.split()[0]
    assert "BREAKPOINT 1: Which colour?" in shown
    assert "waits at a BREAKPOINT: Which colour?" in tasks("state", task, "done", status=1)
    assert "paused" in tasks("pause", task)
    assert "Which colour?" in tasks("resume", task) + tasks("watch", task)
    assert "told: violet" in tasks("answer", task, "violet")
    assert "no such open BREAKPOINT" in tasks("answer", task, "violet", status=1)
    detached = tasks("run", "Remind me in 5 hours to sleep", "--detach").split()[0]
    assert "cancelled" in tasks("cancel", detached)
    assert "names no tool" in tasks("run", "x", "--step", "paint: it", status=1)
    listed = tasks("run", "x", "--step", "add_task: buy tea", "--archetype", "hybrid").split()[0]
    assert "added T-" in tasks("answer", listed, "always")
    assert tasks("approvals") == "1: add_task(title='buy tea')\n"
    assert tasks("approvals", "--revoke", "1") == "revoked 1\n"
    assert "May this be done: add_task(title='buy tea')?" in tasks("retry", listed, "1")
    assert "told: enough" in tasks("edit", listed, "notify: enough")
    with terminal(environment, "chat", "--url", url) as chat:
        chat.wait_for(lambda text: text.endswith("> "))
        chat.type("Hello\n")
        shown = chat.wait_for(lambda text: "it is kept" in text and text.endswith("> "))
        assert f"{task}: violet" in shown
        chat.type("\x04")
        assert chat.end() == 0
    assert tasks("notices") == ""
