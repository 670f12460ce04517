"""Tools of MCP servers: called when a step names them, with their permissions; a bad server harms nobody."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.base.errors import ConfigurationError
from gateway.config.settings import McpServer, Settings
from gateway.runs.tools.outside import outside_servers
from tests.deploy.debian import need
from tests.gateway.api.conftest import Client, changed, in_process, live
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs import outside_server
from tests.gateway.runs.conftest import answer, begin, rest
from tests.waiting import until

SCRIPT = str(outside_server.__file__)


def bad(mode: str, *more: str, risks: Sequence[str] = ("untrusted",), **values: Any) -> McpServer:
    command = [sys.executable, SCRIPT, mode, *more]
    defaults: dict[str, Any] = {"sandbox": False, "seconds": 30.0, "command": command, "name": "odd"}
    return msgspec.convert(defaults | {"tools": {"say": list(risks)}} | values, McpServer)


def configured(settings: Settings, *servers: McpServer) -> Settings:
    return changed(settings, "tasks", servers=list(servers))


async def result(client: Client, *steps: str) -> dict[str, Any]:
    return await rest(client, await begin(client, "x", *steps))


async def test_a_listed_tool_is_called_by_its_name(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(configured(settings, bad("plain")), inference) as client:
        run = await result(client, "odd.say: hello", "notify: it {{1}}")
        assert run["result"] == "told: it said hello", run
        run = await result(client, 'odd.say: {"text": "again"}')
        assert run["result"] == "said again"
        made = (await client.post("/v1/tasks", json={"title": "x", "archetype": "model"})).json()["id"]
        for step, problem in (
            ("odd.unlisted: x", "there is no tool `odd.unlisted`"),
            ('odd.say: {"txt": "x"}', "`odd.say`: Object contains unknown field `txt`"),
            ("none.say: x", "there is no tool `none.say`"),
        ):
            refused = await client.post(f"/v1/tasks/{made}/run", json={"steps": [step]})
            assert refused.status_code == 400
            assert problem in refused.json()["error"]["message"]


async def test_what_a_server_may_counts_among_the_three(
    settings: Settings, inference: ScriptedInference, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    server = bad("append", str(file), risks=("untrusted", "private", "effect"))
    async with in_process(configured(settings, server), inference) as client:
        task = await begin(client, "x", "odd.say: one")
        run = await rest(client, task)
        assert (run["breakpoint"]["kind"], file.exists()) == ("approval", False)
        assert "odd.say(text='one')" in run["breakpoint"]["question"]
        assert (await answer(client, task, "yes"))["result"] == "said one"
        assert file.read_text() == "one\n"


async def test_a_description_that_changes_asks_again(
    settings: Settings, inference: ScriptedInference, tmp_path: Path
) -> None:
    file = tmp_path / "description"
    file.write_text("Say a text.")
    server = bad("told", str(file), risks=("untrusted", "private", "effect"))
    async with in_process(configured(settings, server), inference) as client:
        task = await begin(client, "x", "odd.say: one")
        assert (await rest(client, task))["breakpoint"]["kind"] == "approval"
        file.write_text("Send a text to everybody.")
        run = await answer(client, task, "yes")
        assert run["breakpoint"]["kind"] == "failed"
        assert "now describes itself otherwise, so it was not called" in run["breakpoint"]["question"]
        run = await answer(client, task, "retry")
        assert run["breakpoint"]["kind"] == "approval", "the first one was for another tool"
        assert (await answer(client, task, "yes"))["result"] == "said one"


async def test_output_that_nobody_reads_does_not_hold_a_step(
    settings: Settings, inference: ScriptedInference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio does not count a process as ended while more than twice the ``limit`` is unread."""
    monkeypatch.setattr(
        asyncio, "create_subprocess_exec", partial(asyncio.create_subprocess_exec, limit=1000)
    )
    server = bad("large", seconds=60.0, max_bytes=100_000)
    async with in_process(configured(settings, server), inference) as client:
        run = await rest(client, await begin(client, "x", "odd.say: one"))
    assert "sent more than 100000 bytes" in str(run)


@pytest.mark.parametrize(
    ("mode", "seconds", "problem"),
    [
        ("hang", 6.0, "did not answer within 6 seconds|did not end"),
        ("die", 60.0, "onnection closed|broke its protocol"),
        ("flood", 6.0, "did not|broke its protocol|onnection closed"),
        ("large", 60.0, "sent more than 100000 bytes"),
        ("regex", 6.0, "did not|broke its protocol"),
        ("fail", 60.0, "said one"),
    ],
)
async def test_a_server_that_misbehaves_is_a_failed_step(
    settings: Settings,
    inference: ScriptedInference,
    mode: str,
    seconds: float,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.runs.tools.outside._START_SECONDS", 4.0)
    server = bad(mode, seconds=seconds, max_bytes=100_000)
    async with in_process(configured(settings, server), inference) as client:
        task = await begin(client, "x", "odd.say: one")
        other = await result(client, "notify: meanwhile")  # nobody waits for it
        assert other["state"] == "done"
        run = await rest(client, task)
        assert run["breakpoint"]["kind"] == "failed", run
        assert any(each in run["breakpoint"]["question"] for each in problem.split("|")), run
        assert (await answer(client, task, "skip"))["state"] == "done"


@pytest.mark.parametrize("server", [bad("odd"), bad("plain", command=["/no/such/program"])])
async def test_a_server_without_usable_tools_is_named(
    settings: Settings, inference: ScriptedInference, server: McpServer
) -> None:
    async with in_process(configured(settings, server), inference) as client:
        made = (await client.post("/v1/tasks", json={"title": "x", "archetype": "model"})).json()["id"]
        refused = await client.post(f"/v1/tasks/{made}/run", json={"steps": ["odd.say: one"]})
        message = refused.json()["error"]["message"]
        if server.command == ["/no/such/program"]:
            assert "there is no tool `odd.say`; the MCP server" in message
            assert re.search("it wrote: .*No such file or directory", message), "the program's last line"
        else:
            assert "no schema of its arguments" in message


async def test_over_http(settings: Settings, inference: ScriptedInference) -> None:
    """hearth's own tools, over a real connection."""
    wiki = changed(settings, "wiki", load_sample=True)
    async with live(wiki, inference) as other:
        server = bad("", command=[], url=f"{other.url}/mcp", tools={"search_wiki": ["untrusted"]})
        mine = msgspec.structs.replace(settings, data_dir=settings.data_dir / "mine")
        async with in_process(configured(mine, server), inference) as client:
            run = await result(client, "odd.search_wiki: Befunge | 1")
            assert "Befunge" in str(run["result"]), run
        small = msgspec.structs.replace(server, max_bytes=500)
        async with in_process(configured(mine, small), inference) as client:
            made = (await client.post("/v1/tasks", json={"title": "x", "archetype": "model"})).json()["id"]
            refused = await client.post(f"/v1/tasks/{made}/run", json={"steps": ["odd.search_wiki: x"]})
            assert "the MCP server `odd`" in refused.json()["error"]["message"]


async def test_under_bubblewrap_a_server_sees_only_what_it_may(
    settings: Settings, inference: ScriptedInference, tmp_path: Path
) -> None:
    need("bwrap", "bubblewrap")
    secret = tmp_path / "secret"
    secret.write_text("x")
    read = [sys.prefix, sys.base_prefix, SCRIPT]
    server = bad("look", sandbox=True, read=read, env={"GIVEN": "1"})
    async with in_process(configured(settings, server), inference) as client:
        seen = msgspec.json.decode(str((await result(client, f"odd.say: {secret}"))["result"])[5:])
        assert seen["home"] is False
        assert "GIVEN" in seen["env"]
        assert not [name for name in seen["env"] if name.startswith("HEARTH")]
        seen = msgspec.json.decode(str((await result(client, f"odd.say: {SCRIPT}"))["result"])[5:])
        assert seen["home"] is True
    free = bad("look", env={"GIVEN": "1"})
    async with in_process(configured(settings, free), inference) as client:
        seen = msgspec.json.decode(str((await result(client, f"odd.say: {secret}"))["result"])[5:])
        assert seen["home"] is True, "without it the file is seen"


async def test_no_process_stays_behind(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(
        configured(settings, bad("hang", "unmistakable", seconds=60.0)), inference
    ) as client:
        task = await begin(client, "x", "odd.say: one")
        await until(lambda: _running("unmistakable"))
        await rest(client, task, lambda run: run["steps"][0]["state"] == "doing")
        assert (await client.post(f"/v1/tasks/{task}/cancel")).json()["state"] == "cancelled"
        await until(lambda: not _running("unmistakable"))


def _running(word: str) -> bool:
    lines = (each / "cmdline" for each in Path("/proc").iterdir() if each.name.isdigit())
    for line in lines:
        try:
            if word.encode() in line.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("values", [{"command": []}, {"url": "http://127.0.0.1/mcp"}])
def test_a_server_has_either_a_program_or_an_address(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="either"):
        outside_servers([bad("plain", **values)])
