"""The tools of projects, driven by the official client."""

from __future__ import annotations

from pathlib import Path

from gateway.config.settings import Settings
from tests.gateway.api.conftest import LiveServer
from tests.gateway.api.mcp.test_tools import EVERY, Mode, called, connected, refused, text_of
from tests.gateway.api.test_projects import FILES, register


def made(settings: Settings, folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    register(settings, folder)


@EVERY
async def test_questions_about_the_only_project(
    server: LiveServer, settings: Settings, tmp_path: Path, mode: Mode
) -> None:
    made(settings, tmp_path / "shop", FILES)
    async with connected(server, mode) as client:
        calls = await called(client, "callers_of", name="Auth.login")
        assert [(each["path"], each["line"], each["code"]) for each in calls["confirmed"]] == [
            ("app.py", 4, "Auth().login('a')")
        ]
        assert calls["project"] == "shop" and calls["left_out"] == []
        hits = (await called(client, "search_code", query="turquoise button"))["data"]
        assert (hits[0]["path"], hits[0]["line"], hits[0]["left_out"]) == ("docs/guide.md", 5, 0)
        assert "class Auth" in (await called(client, "outline", about="login"))["text"]
        shown = text_of(await client.call_tool("definition", {"name": "check"}))
        assert shown == "auth.py:5-5 auth.check\ndef check(user): ..."
        assert "nothing in this project is called `nobody`" in await refused(
            client, "callers_of", name="nobody"
        )


async def test_results_say_what_they_leave_out(
    server: LiveServer, settings: Settings, tmp_path: Path
) -> None:
    long = "def long():\n" + "    step()\n" * 299 + "def step(): ...\n"
    many = {f"same{number}.py": "def same(): ...\n" for number in range(7)}
    made(settings, tmp_path / "shop", {"steps.py": long, **many})
    async with connected(server) as client:
        calls = await client.call_tool("callers_of", {"name": "step", "limit": 2})
        assert calls.structured_content is not None
        assert len(calls.structured_content["confirmed"]) == 2
        assert calls.structured_content["left_out"] == ["confirmed"]
        assert "confirmed: 2 (there are more: raise `limit`)" in text_of(calls)
        found = (await called(client, "definition", name="long"))["data"][0]
        assert (found["end_line"], found["text"].count("\n"), found["left_out"]) == (300, 199, 100)
        assert (await called(client, "definition", name="same"))["left_out"] == 2
        hit = (await called(client, "search_code", query="long", limit=1))["data"][0]
        assert (hit["text"].count("\n"), hit["left_out"]) == (19, 280)
        small = await client.call_tool("outline", {"tokens": 50})
        assert "more definitions]" in text_of(small)


async def test_which_of_several_projects_is_asked_for(
    server: LiveServer, settings: Settings, tmp_path: Path
) -> None:
    async with connected(server) as client:
        none = await refused(client, "outline")
        assert "`project`" in none and "none; `hearth context add PATH` registers one" in none
        for name in ("shop", "till"):
            made(settings, tmp_path / name, {"a.py": f"def {name}(): ...\n"})
        assert "shop, till" in await refused(client, "outline")
        assert "there is no project `tilt`; there are: shop, till" in await refused(
            client, "outline", project="tilt"
        )
        assert "def till" in (await called(client, "outline", project="till"))["text"]
