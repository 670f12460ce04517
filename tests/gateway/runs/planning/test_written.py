"""A model that says that a part takes several steps writes them as a list, which is checked, shown, and then run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.conversations.test_conversations import text_of
from tests.gateway.api.scripted import Script, ScriptedInference
from tests.gateway.api.test_projects import register
from tests.gateway.runs.conftest import answer, begin, notices, rest

CATS = {"tool": "search_wiki", "arguments": {"query": "cats"}}
DOGS = {"tool": "search_wiki", "arguments": {"query": "dogs"}}


def able(*steps: dict[str, Any]) -> Script:
    """A model that writes ``steps`` where it may write a list."""

    def script(call: GenerateCall) -> list[str]:
        schema = call.json_schema
        if schema is None:
            return ["Dogs are friendlier."]
        return ['"several steps"' if "enum" in schema else msgspec.json.encode(steps).decode()]

    return script


async def test_a_list_is_shown_and_then_carried_out(client: Client, inference: ScriptedInference) -> None:
    kept = {"tool": "remember", "arguments": {"text": "comparison of cats and dogs: {{3}}"}}
    inference.script = able(CATS, DOGS, {"think": "Which are friendlier?"}, kept)
    task = await begin(client, "Tell me: it begins; a comparison of cats and dogs for the club notes")
    run = await rest(client, task)
    assert (run["planned"], run["breakpoint"]["kind"]) == ("model", "confirm")
    lines = [
        "notify: it begins",
        "search_wiki: cats",
        "search_wiki: dogs",
        "think: Which are friendlier?",
        "remember: comparison of cats and dogs: {{4}}",
    ]
    assert "\n".join(lines) in run["breakpoint"]["question"]
    assert not any(step["attempts"] for step in run["steps"]), "nothing is done before the answer"
    assert run["tokens"] > 0
    run = await answer(client, task, "yes")
    assert (run["state"], [step["state"] for step in run["steps"]]) == ("done", ["done"] * 5)
    [fact] = (await client.get("/v1/facts")).json()["data"]
    assert fact["text"] == "comparison of cats and dogs: Dogs are friendlier."
    assert await notices(client)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([CATS, DOGS, CATS], "the model's step 3 repeats another one"),
        ([{"tool": "search_wiki", "arguments": {"query": "cats of Garfield"}}], "'Garfield'"),
        ([{"tool": "search_wiki", "arguments": {"query": "cats at evil.example"}}], "'evil.example'"),
        ([{"tool": "ask_wiki", "arguments": {"question": "How tall is the tower?"}}], "not about the task"),
        ([{"tool": "remember", "arguments": {"text": "cats are better than dogs"}}], "not about the task"),
        ([{"tool": "notify", "arguments": {"text": "cats: {{1}}"}}], "a result that is not there yet"),
        ([{"tool": "read_file", "arguments": {"path": "cats.md"}}], "does not name: 'cats.md'"),
        ([{"tool": "remember", "arguments": {"text": "cats", "key": "password"}}], "'password'"),
        ([{"tool": "http_get", "arguments": {"url": "https://cats"}}], "there is no tool `http_get`"),
        ([{"tool": "search_wiki", "arguments": {}}], "not about the task"),
        ([{"tool": "search_wiki", "arguments": {"query": "cats", "club": "cats"}}], "`club`"),
        ([{**CATS, "think": "cats?"}], "neither a call nor a question"),
        ([], "wrote no steps"),
        ([{"search": "cats"}], "wrote no steps"),
    ],
)
async def test_what_does_not_follow_from_the_task_is_asked_about(
    client: Client, inference: ScriptedInference, steps: list[dict[str, Any]], problem: str
) -> None:
    inference.script = able(*steps)
    run = await rest(client, await begin(client, "A comparison of cats and dogs for the club notes"))
    assert (run["breakpoint"]["kind"], run["steps"]) == ("checklist", [])
    assert problem in run["breakpoint"]["question"]


async def test_nothing_is_remembered_that_the_task_does_not_ask_for(
    client: Client, inference: ScriptedInference
) -> None:
    inference.script = able({"tool": "remember", "arguments": {"text": "Send 50 euros to Anna"}})
    run = await rest(client, await begin(client, "Send 50 euros to Anna"))
    assert "remembers something, which the task does not ask for" in run["breakpoint"]["question"]


async def test_the_question_names_the_part_and_what_is_known_of_the_rest(
    client: Client, inference: ScriptedInference
) -> None:
    inference.script = able()
    run = await rest(client, await begin(client, "Tell me: it begins; water the plants"))
    assert (
        "for 'water the plants'. For the rest there are `notify: it begins`. Write"
        in run["breakpoint"]["question"]
    )


async def test_a_long_list_is_refused(client: Client, inference: ScriptedInference) -> None:
    title = "A comparison of " + ", ".join(f"cat{number}" for number in range(13))
    inference.script = able(
        *({"tool": "search_wiki", "arguments": {"query": f"cat{number}"}} for number in range(13))
    )
    run = await rest(client, await begin(client, title))
    assert "The model's list has 13 steps, and 12 are possible" in run["breakpoint"]["question"]


async def test_the_schema_has_the_tools_types_and_only_what_the_task_names(
    settings: Settings, inference: ScriptedInference, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "till.py").write_text("def total(prices):\n    return sum(prices)\n")
    register(settings, tmp_path / "shop")
    inference.script = able({"ask": "Which part of till.py?"})

    async def offered(client: Client, title: str, archetype: str) -> dict[str, Any]:
        inference.calls.clear()
        await rest(client, await begin(client, title, archetype=archetype))
        [call] = [call for call in inference.calls if "items" in (call.json_schema or {})]
        assert "{{3}} stands for the result of step 3" in text_of(call)
        assert call.json_schema is not None
        kinds = [each["properties"] for each in call.json_schema["items"]["anyOf"]]
        return {each["tool"]["const"] if "tool" in each else next(iter(each)): each for each in kinds}

    async with in_process(settings, inference) as client:
        found = await offered(client, "A review of till.py and total for the club at 23:59", "hybrid")
        assert found["read_file"]["arguments"]["properties"]["path"] == {"enum": ["till.py"]}
        assert found["callers_of"]["arguments"]["properties"]["name"] == {"enum": ["total"]}
        assert found["wait_until"]["arguments"]["properties"]["time"] == {"enum": ["at 23:59"]}
        assert "key" not in found["remember"]["arguments"]["properties"]
        assert {"think", "ask"} < set(found)
        found = await offered(client, "A review of cats for the club", "model")
        assert not {"read_file", "callers_of", "wait_until", "remind_at", "http_get", "ask"} & set(found)
