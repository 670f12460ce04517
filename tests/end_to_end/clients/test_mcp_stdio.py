"""`hearth mcp`, started by the official client as an editor does, over real servers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from gateway.api.mcp.tools import offered
from tests.end_to_end.server import Server
from tests.gateway.cli.test_foreign_servers import answering, http
from tests.waiting import PATIENCE

COMMAND = ["-m", "gateway.cli.main", "mcp"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on the built-in model and the sample wiki."""
    running = Server(tmp_path_factory.mktemp("mcp") / "data", "hearth-demo")
    yield running
    running.stop()


def hearth(*arguments: str) -> str:
    """The output of a command."""
    command = [sys.executable, "-m", "gateway.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def editor(*arguments: str, mode: str = "auto") -> Client:
    parameters = StdioServerParameters(command=sys.executable, args=[*COMMAND, *arguments])
    return Client(parameters, mode=mode, read_timeout_seconds=PATIENCE)


async def text_of(client: Client, tool: str, **arguments: Any) -> tuple[bool | None, str]:
    result = await client.call_tool(tool, arguments)
    (part,) = result.content
    assert isinstance(part, TextContent)
    return result.is_error, part.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_editor_asks_the_running_server(server: Server, mode: str) -> None:
    steps: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with editor("--data-dir", str(server.data_dir), mode=mode) as client:
        assert "ask_wiki" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(
            "ask_wiki", {"question": "Who created Befunge?"}, progress_callback=on_progress
        )
    assert not result.is_error and result.structured_content is not None
    assert "Chris Pressey" in result.structured_content["answer"]
    assert result.structured_content["citations"][0]["title"] == "Befunge"
    assert "asking" in steps


async def test_the_server_may_come_later_go_and_come_back(tmp_path: Path, tiny_model: Path) -> None:
    data = tmp_path / "data"
    async with editor("--data-dir", str(data)) as client:
        assert len((await client.list_tools()).tools) == len(offered(write=False))
        nobody = (True, f"no server is running on {data}; `hearth start` runs one, --url names another")
        assert await text_of(client, "facts") == nobody
        for _ in range(2):
            running = Server(data, tiny_model)
            assert await text_of(client, "facts") == (False, '{"data":[],"next":null}')
            running.stop()
            assert await text_of(client, "facts") == nobody


async def test_keys_and_addresses_are_those_of_the_other_commands(tmp_path: Path, tiny_model: Path) -> None:
    data = tmp_path / "data"
    key = hearth("key", "create", "anna", "--data-dir", str(data)).split()[-1]
    running = Server(data, tiny_model)
    try:
        for given, failed, text in (
            ([], True, "an API key is needed: Authorization: Bearer KEY; give `hearth mcp` a key"),
            (["--key", "wrong"], True, "this key is unknown or revoked; give `hearth mcp` a key"),
            (["--key", key], False, '{"data":[],"next":null}'),
        ):
            async with editor("--url", running.url, *given) as client:
                assert len((await client.list_tools()).tools) == len(offered(write=False))
                result = await text_of(client, "facts")
                assert result[0] is failed and result[1].startswith(text)
                if not failed:
                    running.stop()
                    said = (True, f"no server answers at {running.url}; `hearth start` runs one")
                    assert await text_of(client, "facts") == said
    finally:
        running.stop()


async def test_another_server_is_told_apart() -> None:
    replies = [b""]
    with answering(replies) as url:
        async with editor("--url", url) as client:
            for reply in (
                http("text/html", "<html></html>"),
                http("application/json", "[]"),
                http("application/json", '{"jsonrpc":"2.0","id":1,"result":{"content":7}}'),
                http("text/event-stream", "event: message\ndata: nonsense\n\n"),
                http("text/html", "", "302 Found"),
                http("text/html", "none", "404 Not Found"),
                b"nonsense\r\n\r\n",
            ):
                replies.append(reply)
                assert len((await client.list_tools()).tools) == len(offered(write=False)), reply
                failed, text = await text_of(client, "facts")
                said = "is it a hearth server?" in text or text.startswith(f"the connection to {url} broke")
                assert failed and said, (reply, text)


def test_hostile_input_gets_only_messages_and_an_end(tmp_path: Path) -> None:
    lines = [
        b"", b"{", b"\xff\xfe", b"null", b"[]", b"[" * 100_000, b'{"jsonrpc":"2.0","id":1}', b"x" * 2_000_000,
        b'{"jsonrpc":"2.0","id":"last","method":"ping"}',
    ]  # fmt: skip
    command = [sys.executable, *COMMAND, "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        run.stdin.write(b"\n".join(lines) + b"\n")
        run.stdin.flush()
        while (reply := json.loads(run.stdout.readline()))["id"] != "last":
            assert "error" in reply
        assert reply["result"] == {}
        rest, log = run.communicate(timeout=PATIENCE)  # which closes its input
    assert (run.returncode, rest) == (0, b"")
    assert b"hearth: no server is running on" in log


def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    command = [sys.executable, *COMMAND, "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdin is not None and run.stdout is not None
        run.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        run.stdin.flush()
        assert json.loads(run.stdout.readline())["result"] == {}
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) == -signal.SIGINT


@pytest.mark.parametrize("installed", ["None", "sys.__class__('mcp')"], ids=["none", "older"])
def test_the_extra_is_named_when_it_is_missing(installed: str) -> None:
    code = f"import sys; sys.modules['mcp'] = {installed}; from gateway.cli.main import run; sys.exit(run(['mcp']))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 78
    wanted = "MCP needs the extra hearth[mcp]; install it with: python -m pip install 'mcp>=2.3,<3'"
    assert run.stderr == f"hearth: {wanted}\n"
