"""The tools of registered projects, driven by the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client

from gateway.config.settings import Settings
from tests.gateway.api.conftest import live
from tests.gateway.api.mcp.test_tools import called, connected, refused, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.api.test_projects import register

LONG = "def long():\n" + "".join(f"    step({number})\n" for number in range(200))


@asynccontextmanager
async def asking(settings: Settings, inference: ScriptedInference, folder: Path) -> AsyncIterator[Client]:
    (folder / "long.py").write_text(LONG)
    register(settings, folder)
    async with live(settings, inference) as server, connected(server) as client:
        yield client


async def test_callers_come_in_groups_with_their_lines(
    settings: Settings, inference: ScriptedInference, root: Path
) -> None:
    async with asking(settings, inference, root) as client:
        found = await called(client, "callers_of", name="Auth.login")
        assert found["of"] == ["auth.py:2 method auth.Auth.login"]
        assert found["confirmed"] == [
            {"caller": "app.main", "path": "app.py", "line": 4, "code": "Auth().login('a')"}
        ]
        assert (found["possible"], found["unresolved"], found["left_out"]) == ([], [], 0)
        shown = text_of(await client.call_tool("callers_of", {"name": "step", "limit": 3}))
        assert "nothing in this project is called `step`" in shown
        shown = text_of(await client.call_tool("callers_of", {"name": "login"}))
        assert "confirmed:\n  app.py:4 in app.main: Auth().login('a')\npossible:\n  none" in shown


async def test_a_definition_is_its_code_and_says_what_is_cut(
    settings: Settings, inference: ScriptedInference, root: Path
) -> None:
    async with asking(settings, inference, root) as client:
        [auth] = (await called(client, "definition", name="Auth"))["definitions"]
        assert auth["code"] == "class Auth:\n    def login(self, user):\n        return check(user)"
        [long] = (await called(client, "definition", name="long.py:1", project="shop"))["definitions"]
        assert (long["shown_to"], long["end_line"]) == (120, 201)
        shown = text_of(await client.call_tool("definition", {"name": "long.long"}))
        assert shown.endswith("step(118)\n[81 more lines, from long.py:121]")


async def test_search_and_outline(settings: Settings, inference: ScriptedInference, root: Path) -> None:
    async with asking(settings, inference, root) as client:
        [part] = (await called(client, "search_code", query="turquoise button"))["data"]
        assert (part["kind"], part["path"], part["line"]) == ("document", "docs/guide.md", 5)
        assert part["text"].endswith("Press the turquoise button to sign in.")
        shown = text_of(await client.call_tool("outline", {"tokens": 60, "about": "login"}))
        assert "login(self, user)" in shown and "more definitions did not fit" in shown


async def test_the_project_is_named_where_there_are_several(
    settings: Settings,
    inference: ScriptedInference,
    root: Path,
    tmp_path: Path,
) -> None:
    async with live(settings, inference) as server, connected(server) as client:
        assert "`hearth context add PATH` adds one" in await refused(client, "outline")
        register(settings, root)
        assert await called(client, "definition", name="check")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "a.py").write_text("def one(): ...\n")
        register(settings, tmp_path / "other")
        assert "must name one of the projects: `other`, `shop`" in await refused(client, "outline")
        assert (await called(client, "definition", name="one", project="other"))["left_out"] == 0
        assert "there is no project `nowhere`" in await refused(client, "outline", project="nowhere")
        assert "`tokens`" in await refused(client, "outline", project="shop", tokens=10**9)
