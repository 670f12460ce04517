"""POST /mcp, driven by the official client: every tool, owners, progress, cancellation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from gateway.config.settings import Settings
from tests.gateway.api.conftest import LiveServer, changed, client_of, live, make_key
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE

Mode = Literal["auto", "legacy", "stdio"]
EVERY = pytest.mark.parametrize("mode", ["auto", "legacy", "stdio"])
WIKI, MEMORY = ["ask_wiki", "search_wiki", "read_page"], ["facts", "tasks", "runs", "conversations_search"]
READING = [*WIKI, "search_code", "definition", "callers_of", "outline", *MEMORY]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """These tests answer from the sample wiki."""
    return changed(settings, "wiki", load_sample=True)


@asynccontextmanager
async def connected(server: LiveServer, mode: Mode = "auto", key: str = "") -> AsyncIterator[Client]:
    """A client over HTTP of the newest version or an older one, or over ``hearth mcp``."""
    if mode == "stdio":
        command = ["-m", "gateway.cli.main", "mcp", "--url", server.url]
        async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content, which the client has checked against the tool's schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


@EVERY
async def test_tools_describe_themselves(server: LiveServer, mode: Mode) -> None:
    async with connected(server, mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == READING
        for tool in tools:
            assert tool.annotations is not None and tool.annotations.read_only_hint
            assert tool.title and tool.description and "\n" not in tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.output_schema is not None and tool.output_schema["type"] == "object"
        with pytest.raises(MCPError, match="leave `cursor` out"):
            await client.list_tools(cursor="2")


@EVERY
async def test_an_answer_comes_with_progress_and_citations(server: LiveServer, mode: Mode) -> None:
    steps: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, message))

    async with connected(server, mode) as client:
        result = await client.call_tool(
            "ask_wiki", {"question": "Who created Befunge?"}, progress_callback=on_progress
        )
    assert result.structured_content is not None
    assert result.structured_content["answer"].startswith("Chris Pressey created Befunge")
    url = result.structured_content["citations"][0]["url"]
    assert f"[1] Befunge: {url}" in text_of(result)
    assert [number for number, _ in steps] == sorted({number for number, _ in steps})
    assert "search terms: those of the question" in [message for _, message in steps]


async def test_a_search_gives_places_and_says_what_it_leaves_out(server: LiveServer) -> None:
    async with connected(server) as client:
        two = await called(client, "search_wiki", query="Who created Befunge?", limit=2)
        assert two["pages"][0]["title"] == "Befunge"
        assert two["pages"][0]["url"].startswith("https://")
        assert "Chris Pressey" in two["pages"][0]["snippet"]
        assert len(two["pages"]) == 2
        three = await called(client, "search_wiki", query="Who created Befunge?", limit="3", other=None)
        assert three["left_out"] == two["left_out"] - 1 > 0
        assert (await called(client, "search_wiki", query="xyzzyplugh"))["pages"] == []


async def test_the_parts_of_a_page_are_the_page(server: LiveServer) -> None:
    async with connected(server) as client:
        whole = await called(client, "read_page", title="befunge")
        assert (whole["title"], whole["next"], whole["end"]) == ("Befunge", None, whole["total"])
        parts, offset = [], 0
        while offset is not None:
            part = await called(client, "read_page", title="Befunge", offset=offset, length=500)
            assert len(part["text"]) <= 500 and part["offset"] == offset
            parts.append(part["text"])
            offset = part["next"]
        assert len(parts) > 2
        assert "".join(parts) == whole["text"]
        behind = await called(client, "read_page", title="Befunge", offset=10**9)
        assert (behind["text"], behind["next"]) == ("", None)
        first = await client.call_tool("read_page", {"title": "Befunge", "length": 500})
        assert f"of {whole['total']}; continue with offset" in text_of(first)


@EVERY
async def test_mistakes_are_told_to_the_model(server: LiveServer, mode: Mode) -> None:
    async with connected(server, mode) as client:
        assert "`limit`: must be a whole number of at most 10" in await refused(
            client, "search_wiki", query="x", limit=11
        )
        assert "missing required field `query`" in await refused(client, "search_wiki")
        assert "unknown field `colour`" in await refused(client, "facts", colour="red")
        assert "the wiki has no page `Nowhere`" in await refused(client, "read_page", title="Nowhere")
        assert "the question is empty" in await refused(client, "ask_wiki", question=" ")
        with pytest.raises(MCPError, match=r"there is no tool `remember`: .* mcp\.write"):
            await client.call_tool("remember", {"key": "home_city", "text": "Rome"})


async def test_writing_is_a_setting(settings: Settings, inference: ScriptedInference) -> None:
    async with live(changed(settings, "mcp", write=True), inference) as server, connected(server) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [*READING, "remember", "add_task", "answer_breakpoint"]
        assert not any(tool.annotations.read_only_hint for tool in tools[-2:] if tool.annotations)
        kept = await called(client, "remember", key="home_city", text="Rome")
        assert (await called(client, "facts"))["data"] == [kept]
        assert "`text`: the fact `home_city` has this text already" in await refused(
            client, "remember", key="home_city", text="Rome"
        )
        added = await called(client, "add_task", title="Buy bread")
        assert (await called(client, "tasks", day="today", state="open"))["data"] == [added]


async def test_owners_see_their_own(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "mcp", write=True)
    anna, ben = make_key(settings, "anna", "user"), make_key(settings, "ben", "admin")
    async with live(settings, inference) as server:
        async with connected(server, key=anna) as client:
            await called(client, "remember", key="home_city", text="Rome")
            await called(client, "add_task", title="Buy bread")
            headers = {"Authorization": f"Bearer {anna}"}
            async with client_of(server, headers=headers) as http:
                made = (await http.post("/v1/conversations", json={})).json()["id"]
                said = {"text": "My bicycle is turquoise.", "reply": False}
                await http.post(f"/v1/conversations/{made}/messages", json=said)
            found = await called(client, "conversations_search", q="bicycle")
            assert [hit["conversation"] for hit in found["data"]] == [made]
        async with connected(server, key=ben) as client:
            for tool, arguments in {
                "facts": {},
                "tasks": {},
                "conversations_search": {"q": "bicycle"},
            }.items():
                assert (await called(client, tool, **arguments))["data"] == []
            assert "there is no conversation" in await refused(
                client, "conversations_search", q="bicycle", conversation=made
            )
        for key in ("", "wrong"):
            with pytest.raises(BaseExceptionGroup) as caught:
                async with connected(server, key=key) as client:
                    await client.list_tools()
            assert caught.group_contains(MCPError, match="key")


@EVERY
async def test_a_cancelled_call_ends_its_work(
    server: LiveServer, inference: ScriptedInference, mode: Mode
) -> None:
    inference.delay = PATIENCE
    async with connected(server, mode) as client:
        call = asyncio.create_task(client.call_tool("ask_wiki", {"question": "Who created Befunge?"}))
        await inference.begun.acquire()
        call.cancel()
        async with asyncio.timeout(PATIENCE / 2):
            await inference.cancelled.wait()
        inference.delay = 0.0
        assert (await called(client, "ask_wiki", question="Who created Befunge?"))["citations"]


async def test_many_clients_at_once(server: LiveServer) -> None:
    async def one(number: int) -> str:
        async with connected(server, "legacy" if number % 2 else "auto") as client:
            pages = (await called(client, "search_wiki", query="Befunge", limit=1))["pages"]
            return str(pages[0]["title"])

    assert await asyncio.gather(*map(one, range(30))) == ["Befunge"] * 30


async def test_a_server_that_stops_tells_the_open_calls(
    settings: Settings, inference: ScriptedInference
) -> None:
    inference.delay = PATIENCE
    async with live(settings, inference) as server, connected(server) as client:
        call = asyncio.create_task(client.call_tool("ask_wiki", {"question": "Who created Befunge?"}))
        await inference.begun.acquire()
        server.server.stop()
        result = await call
    assert result.is_error
    assert text_of(result).startswith("the server is stopping; try again shortly")
