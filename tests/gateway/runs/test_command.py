"""`hearth tasks run` and what belongs to it, against a real gateway."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.gateway.cli.conftest import COMMAND, ROOT, run_command
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
    assert "A colour" in tasks("resume", task, "--detach")
    assert "Which colour?" in tasks("watch", task)
    assert "BREAKPOINT 3: Which colour?" in tasks("resume", task), "not before the question is there"
    assert "told: violet" in tasks("answer", task, "violet")
    assert "BREAKPOINT 3 was answered already" in tasks("answer", task, "violet", status=1)
    detached = tasks("run", "Remind me in 5 hours to sleep", "--detach").split()[0]
    assert "cancelled" in tasks("cancel", detached)
    assert "names no tool" in tasks("run", "never made", "--step", "paint: it", status=1)
    assert "which has no hour" in tasks("run", "Remind me tomorrow to sleep", status=1)
    listed = tasks()
    assert "never made" not in listed
    assert "tomorrow" not in listed
    goal = re.search(
        r"O-\S+", tasks("add", "--objective", "--archetype", "model", "Move: ask: where to, notify me")
    )
    assert goal is not None
    followed = tasks("run", goal[0])
    assert "BREAKPOINT" in followed, "the question of one of its tasks"
    assert "cancelled" in tasks("cancel", goal[0])
    listed = tasks("run", "x", "--step", "add_task: buy tea", "--archetype", "hybrid").split()[0]
    assert "added T-" in tasks("answer", listed, "always")
    assert tasks("approvals") == "1: add_task(title='buy tea')\n"
    assert tasks("approvals", "--revoke", "1") == "revoked 1\n"
    assert "May this be done: add_task(title='buy tea')?" in tasks("retry", listed, "1")
    assert "told: enough" in tasks("edit", listed, "notify: enough")
    steps = ("--step", "add_task: a", "--step", "add_task: b", "--archetype", "hybrid")
    two = tasks("run", "Two teas", *steps).split()[0]
    other = {**environment, "XDG_STATE_HOME": str(tmp_path / "other")}
    shutil.copytree(tmp_path / "home" / ".local" / "state", tmp_path / "other")  # saw the same question
    assert "add_task(title='b')" in tasks("answer", two, "yes")
    late = run_command(other, tmp_path, "tasks", "--url", url, "answer", two, "yes")
    assert "was answered already" in late.stderr, "not an answer to the next question"
    assert "add_task(title='b')" in late.stdout, "which it shows"
    shown_file = tmp_path / "other" / "hearth" / "breakpoints.json"
    shown_later = json.loads(shown_file.read_text())
    for each in shown_later.values():
        each[-1]["at"] += 3600  # as by a command beside the next one
    shown_file.write_text(json.dumps(shown_later))
    beside = run_command(other, tmp_path, "tasks", "--url", url, "answer", two, "yes")
    assert "was answered already" in beside.stderr, "not an answer to a question that came after its start"
    shown_file.write_text(json.dumps({name: each[-1:] for name, each in shown_later.items()}))
    beside = run_command(other, tmp_path, "tasks", "--url", url, "answer", two, "yes")
    assert "asked after the command was started" in beside.stderr
    assert "add_task(title='b')" in beside.stdout
    assert "cancelled" in tasks("cancel", two)
    assert "add_task(title='a')" in tasks("run", "More teas", *steps)
    more = tasks().rpartition("More teas")[0].rpartition("T-")[2].split()[0]
    both = [
        subprocess.Popen(
            [*COMMAND, "tasks", "--url", url, "answer", f"T-{more}", "yes"],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    said = [each.communicate(timeout=60) for each in both]
    assert sorted(each.returncode for each in both) == [0, 1], said
    assert "cancelled" in tasks("cancel", f"T-{more}")
    asked = httpx2.get(f"{url}/v1/tasks/{task}/run").json()["steps"][0]["request"]
    replayed = run_command(environment, tmp_path, "log", asked, "--replay", "--url", url)
    assert replayed.stdout.startswith("--- ask(question='Which colour?'): not called again"), replayed.stderr
    lines = (
        "read_file: none.md",
        "search_wiki: Befunge",
        "think: What is Befunge?",
        "remember: my cup is blue",
    )
    looked_up = tasks("run", "Befunge", *(part for line in lines for part in ("--step", line))).split()[0]
    tasks("answer", looked_up, "skip")
    assert "remembered" in tasks("answer", looked_up, "yes")
    requests = [step["request"] for step in httpx2.get(f"{url}/v1/tasks/{looked_up}/run").json()["steps"]]
    failed, searched, thought, remembered = (
        run_command(environment, tmp_path, "log", each, "--replay", "--url", url) for each in requests
    )
    assert "no project is registered" in failed.stderr, "what failed then fails now"
    assert searched.stdout.startswith("--- search_wiki(query='Befunge'): the same result\n")
    assert thought.stdout.startswith("--- generation 1: step, prompt step")
    assert remembered.stdout.startswith("--- remember(text='my cup is blue'): not called again")
    run_command(environment, tmp_path, "tasks", "--url", url, "delete", looked_up)
    assert looked_up not in run_command(environment, tmp_path, "log", "--kind", "tasks").stdout
    gone = run_command(environment, tmp_path, "log", requests[0])
    assert "no request in the log" in gone.stderr, "nothing stays of what a deleted task has read"
    with terminal(environment, "chat", "--url", url) as chat:
        chat.wait_for(lambda text: text.endswith("> "))
        chat.type("Hello\n")
        shown = chat.wait_for(lambda text: "it is kept" in text and text.endswith("> "))
        assert f"{task}: violet" in shown
        chat.type("\x04")
        assert chat.end() == 0
    assert tasks("notices") == ""
