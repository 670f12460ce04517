"""Responses that continue each other, and their rows: shown, listed, erased, dropped."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings
from gateway.store import responses as stored
from model_host.protocol import Message, ToolCall, ToolDelta
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

ANSWER = "Chris Pressey created Befunge [1]."
TOOL: Any = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}


def rows(settings: Settings) -> list[str]:
    with opened_database(settings.data_dir / "hearth.db") as database:
        found = database.read_sync(lambda c: c.execute("SELECT id FROM responses ORDER BY seq").fetchall())
    return [str(row[0]) for row in found]


async def test_a_response_continues_another(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    first = await ai.responses.create(model="default", input="Who?", instructions="Be brief.")
    async with ai.responses.stream(
        model="default", input="And when?", previous_response_id=first.id
    ) as stream:
        second = await stream.get_final_response()
    third = await ai.responses.create(
        model="default", input="Why?", previous_response_id=second.id, store=True
    )
    assert (third.previous_response_id, second.previous_response_id) == (second.id, first.id)
    assert inference.calls[-1].messages == [
        Message("user", "Who?"),  # instructions hold for one response
        Message("assistant", ANSWER),
        Message("user", "And when?"),
        Message("assistant", ANSWER),
        Message("user", "Why?"),
    ]
    assert (await ai.responses.retrieve(third.id)).model_dump() == third.model_dump()
    items = [item async for item in ai.responses.input_items.list(third.id, order="asc", limit=2)]
    texts = [part.text for item in items for part in item.content]  # type: ignore[union-attr]
    assert texts == ["Who?", ANSWER, "And when?", ANSWER, "Why?"]


@pytest.mark.parametrize("behind", ["", "Wait."])
async def test_a_result_answers_a_stored_call(
    ai: openai.AsyncOpenAI, inference: ScriptedInference, behind: str
) -> None:
    inference.script = lambda call: [
        ToolDelta(call.id, 0, "c1", "add", '{"a":1}'),
        *([behind] if behind else []),
    ]
    first = await ai.responses.create(model="default", input="1+1?", tools=[TOOL])
    with pytest.raises(openai.BadRequestError, match="c1") as refused:
        await ai.responses.create(model="default", input="x", previous_response_id=first.id)
    assert refused.value.param == "input[0]"
    inference.script = lambda call: ["2"]
    result: Any = {"type": "function_call_output", "call_id": "c1", "output": "2"}
    await ai.responses.create(model="default", input=[result], previous_response_id=first.id)
    assert inference.calls[-1].messages == [
        Message("user", "1+1?"),
        Message("assistant", behind, tool_calls=[ToolCall("c1", "add", {"a": 1})]),
        Message("tool", "2", tool_call_id="c1", name="add"),
    ]


async def test_what_is_erased_or_not_stored_is_gone(
    ai: openai.AsyncOpenAI, settings: Settings, inference: ScriptedInference
) -> None:
    kept = await ai.responses.create(model="default", input="a", user="u")
    again = await ai.responses.create(model="default", input="b", previous_response_id=kept.id)
    unkept = await ai.responses.create(model="default", input="c", store=False)
    assert rows(settings) == [kept.id, again.id]
    await ai.responses.delete(again.id)
    assert inference.forgotten == ["local"]
    for gone in (again.id, unkept.id, "resp_never"):
        with pytest.raises(openai.NotFoundError, match="not found") as missing:
            await ai.responses.retrieve(gone)
        assert missing.value.type == "invalid_request_error"
        with pytest.raises(openai.NotFoundError):
            await ai.responses.delete(gone)
        with pytest.raises(openai.NotFoundError):
            await ai.responses.input_items.list(gone)
        with pytest.raises(openai.BadRequestError, match="not found") as lost:
            await ai.responses.create(model="default", input="d", previous_response_id=gone)
        assert (lost.value.code, lost.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_a_users_responses_are_erased_with_the_requests(client: Client, settings: Settings) -> None:
    for user in ("ann", "bob"):
        await client.post("/v1/responses", json={"model": "default", "input": "x", "user": user})
    assert (await client.delete("/v1/requests", params={"user": "ann"})).json()["requests"] == 1
    assert len(rows(settings)) == 1


async def test_secrets_are_not_stored(client: Client, inference: ScriptedInference) -> None:
    secret = "sk-proj-" + "aB3dE5gH7j" * 4
    inference.script = lambda call: [f"Got {secret}."]
    first = (await client.post("/v1/responses", json={"model": "default", "input": secret})).json()
    assert secret in first["output"][0]["content"][0]["text"]
    for path in ("", "/input_items"):
        assert secret not in (await client.get(f"/v1/responses/{first['id']}{path}")).text


async def test_the_oldest_are_dropped(
    client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(text: str = "x") -> str:
        return str(
            (await client.post("/v1/responses", json={"model": "default", "input": text})).json()["id"]
        )

    monkeypatch.setattr(stored, "MAX_RESPONSES", 3)
    made = [await ask() for _ in range(5)]
    assert rows(settings) == made[-3:]
    monkeypatch.setattr(stored, "MAX_BYTES", 5000)
    large = await ask("x" * 6000)
    assert rows(settings) == [large]
    small = await ask()
    assert rows(settings) == [small]
    monkeypatch.setattr(stored, "MAX_AGE_SECONDS", -1)
    assert rows(settings) == [small]
    last = await ask()
    assert rows(settings) == [last]


async def test_unknown_query_parameters_are_refused(client: Client) -> None:
    first = (await client.post("/v1/responses", json={"model": "default", "input": "x"})).json()["id"]
    for path, name in (("", "stream"), ("/input_items", "before"), ("/input_items", "after")):
        refused = await client.get(f"/v1/responses/{first}{path}", params={name: "x"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, name)
