"""Assistants and code conversations on the real host with the built-in model."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.end_to_end.server import Server

LIMITS = {
    "HEARTH_MEMORY__REFLECTION_AFTER": "3",
    "HEARTH_MEMORY__REFLECTION_FOLDS": "2",
    "HEARTH_MEMORY__FACTS": "false",
    "HEARTH_MEMORY__TASKS": "false",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, demo_model: str) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("characters"), demo_model, env=LIMITS)
    yield running
    running.stop()


def call(server: Server, method: str, path: str, **body: Any) -> dict[str, Any]:
    reply = server.client.request(method, path, json=body or None)
    reply.raise_for_status()
    return dict(reply.json())


def keep(server: Server, name: str, *lines: tuple[str, str], **more: Any) -> None:
    for speaker, text in lines:
        who = {"role": "assistant"} if not speaker else {"speaker": speaker}
        call(server, "POST", f"/v1/conversations/{name}/messages", text=text, reply=False, **who, **more)


def hours_pass(data: Path) -> None:
    with closing(sqlite3.connect(data / "hearth.db", timeout=30)) as connection, connection:
        connection.execute("UPDATE messages SET created_at = created_at - 7200")
        connection.execute("UPDATE summaries SET to_time = to_time - 7200")
        connection.execute("UPDATE conversations SET updated_at = updated_at - 7200")


def test_an_assistant_remembers_what_it_heard_in_other_conversations(server: Server) -> None:
    call(server, "POST", "/v1/assistants", name="Lynly", biography="A bard in Ivarstead.")
    heard = {
        "Anna": (
            "My horse Karlo has lost a shoe near the bridge.",
            "The smith in Riften asks 35 septims for it.",
        ),
        "Bob": ("My sister Tessa arrives on the 14th of March.", "We need room 12 at the inn for her."),
        "Cy": ("The road to Falkreath is closed until 18:45.", "I have 3 letters for the miller Hod."),
    }
    for who, lines in heard.items():
        name = call(server, "POST", "/v1/conversations", assistant="Lynly", participants=[who])["id"]
        keep(server, name, (who, lines[0]), ("", "I see."), (who, lines[1]), ("", "I will remember it."))
        hours_pass(server.data_dir)
        assert call(server, "POST", f"/v1/conversations/{name}/compact")["summaries"] == 1
    [reflection] = call(server, "GET", "/v1/assistants/Lynly/reflections")["data"]
    told = "\n".join([reflection["text"], *reflection["pins"]])
    assert sum(word in told for word in ("Karlo", "Riften", "35", "Tessa", "March", "12")) >= 4, told
    now = call(server, "POST", "/v1/conversations", assistant="Lynly")["id"]
    blocks = {
        each["name"]: each["text"]
        for each in call(server, "GET", f"/v1/conversations/{now}/context")["blocks"]
    }
    assert blocks["biography"] == "You are Lynly.\nA bard in Ivarstead."
    assert told.splitlines()[0] in blocks["reflection"]
    assert "with Cy]" in blocks["elsewhere"] and "Falkreath" in blocks["elsewhere"]


def test_variables_of_code_are_kept_and_failed_ones_are_not(server: Server) -> None:
    name = call(server, "POST", "/v1/conversations", kind="code")["id"]
    keep(server, name, ("Ann", "Please make 100 random numbers."))
    keep(server, name, ("", "```python\nimport numpy as np\nrandom_numbers = np.random.rand(100)\n```"))
    keep(server, name, ("Ann", "Show the largest 5."))
    keep(server, name, ("", "```python\nbroken_table = top(random_numbers)\n```"), failed=True)
    keep(server, name, ("", "```python\nlargest = sorted(random_numbers)[-5:]\n```"))
    for number in range(4):
        keep(server, name, ("Ann", f"And step {number}, please."), ("", "Done."))
    assert call(server, "POST", f"/v1/conversations/{name}/compact")["summaries"] == 1
    [summary] = call(server, "GET", f"/v1/conversations/{name}/summaries")["data"]
    listed = msgspec.json.decode(summary["text"])["Variables"]
    assert [each["name"] for each in listed] == ["random_numbers", "largest"]
    assert "broken_table" not in str(call(server, "GET", f"/v1/conversations/{name}/context")["blocks"])
