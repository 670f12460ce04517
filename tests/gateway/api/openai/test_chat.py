"""POST /v1/chat/completions: each field is honoured or refused by name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.base.errors import ModelUnavailableError, NotFoundError, PromptTooLongError
from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings
from gateway.store.request_log import RequestRecord, get_record
from model_host.protocol import Sampling
from tests.gateway.api.conftest import Client, make_key
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE

HI = [{"role": "user", "content": "hi"}]


async def post(client: Client, **fields: Any) -> Any:
    return await client.post("/v1/chat/completions", json={"messages": HI, **fields})


async def test_the_shape_of_a_reply(client: Client) -> None:
    reply = await client.post(
        "/v1/chat/completions",
        json={"model": "default", "messages": HI, "user": "u1"},
        headers={"X-Request-ID": "abc"},
    )
    body = reply.json()
    assert body["id"] == "chatcmpl-abc"
    assert (body["object"], body["model"]) == ("chat.completion", "scripted")
    (choice,) = body["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] == "Chris Pressey created Befunge [1]."
    assert choice["finish_reason"] == "stop"
    assert body["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 5,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2},
    }


async def test_all_fields_reach_the_model(client: Client, inference: ScriptedInference) -> None:
    fields = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c", "refusal": None, "tool_calls": None, "annotations": []},
            {"role": "user", "content": "d"},
        ],
        "stop": "END",
        "seed": 42,
        "max_completion_tokens": 9,
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 3,
        "min_p": 0.1,
        "repeat_penalty": 1.1,
        "presence_penalty": -1,
        "frequency_penalty": 2,
        "priority": "background",
        "keep_alive": "5m",
        "ignore_eos": True,
        "grammar": 'root ::= "x"',
    }
    assert (await client.post("/v1/chat/completions", json=fields)).status_code == 200
    (call,) = inference.calls
    assert [(m.role, m.content) for m in call.messages or []] == [
        ("system", "Be brief."),
        ("user", "ab"),
        ("assistant", "c"),
        ("user", "d"),
    ]
    assert (call.stop, call.max_tokens, call.lane, call.keep_alive) == (["END"], 9, "background", 300.0)
    assert (call.ignore_eos, call.grammar, call.owner) == (True, 'root ::= "x"', "local")
    assert call.sampling == Sampling(
        temperature=0.0,
        top_k=3,
        top_p=0.5,
        min_p=0.1,
        repeat_penalty=1.1,
        presence_penalty=-1.0,
        frequency_penalty=2.0,
        seed=42,
    )


async def test_null_is_as_good_as_absent(client: Client, inference: ScriptedInference) -> None:
    names = ["stop", "seed", "max_tokens", "temperature", "top_p", "stream", "response_format", "tools", "n"]
    assert (await post(client, **dict.fromkeys(names))).status_code == 200
    assert inference.calls[0].sampling == Sampling()


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1},
        {"logprobs": False},
        {"tools": []},
        {"tool_choice": "auto"},
        {"logit_bias": {}},
        {"response_format": {"type": "text"}},
        {"stop": []},
        {"service_tier": "auto"},
    ],
)
async def test_neutral_fields_are_accepted(client: Client, fields: dict[str, Any]) -> None:
    assert (await post(client, **fields)).status_code == 200


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"n": 9}, "n", "invalid_request"),
        ({"n": True}, "n", "invalid_request"),
        ({"logprobs": 3}, "logprobs", "invalid_request"),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_request"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_request"),
        ({"tools": [{"type": "function"}]}, "tools[0].function", "invalid_request"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_request"),
        ({"functions": [{"name": "f"}]}, "functions", "unsupported_field"),
        ({"temprature": 1}, "temprature", "unknown_field"),
        ({"penalty_last_n": 8193}, "penalty_last_n", "invalid_request"),
        ({"temperature": 6}, "temperature", "invalid_request"),
        ({"temperature": "hot"}, "temperature", "invalid_request"),
        ({"top_p": 1.1}, "top_p", "invalid_request"),
        ({"presence_penalty": -3}, "presence_penalty", "invalid_request"),
        ({"seed": -2}, "seed", "invalid_request"),
        ({"max_tokens": 0}, "max_tokens", "invalid_request"),
        ({"max_tokens": 1.5}, "max_tokens", "invalid_request"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_completion_tokens", "invalid_request"),
        ({"stop": ["x"] * 17}, "stop", "invalid_request"),
        ({"stop": [""]}, "stop[0]", "invalid_request"),
        ({"stop": ""}, "stop", "invalid_request"),
        ({"stream": "yes"}, "stream", "invalid_request"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_request"),
        ({"stream": True, "stream_options": {"x": 1}}, "stream_options.x", "unknown_field"),
        ({"priority": "high"}, "priority", "invalid_request"),
        ({"keep_alive": "later"}, "keep_alive", "invalid_request"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_request"),
        ({"response_format": {"type": "json_schema"}}, "response_format", "invalid_request"),
        ({"response_format": {"type": "text", "json_schema": {}}}, "response_format", "invalid_request"),
        ({"response_format": {"type": "json_object"}, "grammar": "x"}, "grammar", "invalid_request"),
        ({"messages": []}, "messages", "invalid_request"),
        ({"messages": "hi"}, "messages", "invalid_request"),
        ({"messages": ["hi"]}, "messages[0]", "invalid_request"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "invalid_request"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id", "invalid_request"),
        ({"messages": [{"role": "user", "content": "x", "y": 1}]}, "messages[0].y", "unknown_field"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0].type",
            "invalid_request",
        ),
    ],
)
async def test_refusals_name_the_field(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], param: str, code: str
) -> None:
    reply = await post(client, **fields)
    error = reply.json()["error"]
    assert reply.status_code == 400
    assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error")
    assert param.rpartition(".")[2] in error["message"]
    assert error["request_id"] == reply.headers["x-request-id"]
    assert inference.calls == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"messages": 1e999}'])
async def test_bodies_that_are_no_object(client: Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await client.post("/v1/chat/completions", content=body, headers=headers)).status_code == 400


async def test_missing_messages(client: Client) -> None:
    error = (await client.post("/v1/chat/completions", json={})).json()["error"]
    assert error["param"] == "messages"


@pytest.mark.parametrize(
    ("wanted", "schema"),
    [
        ({"type": "json_object"}, {"type": "object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}}},
            {"type": "array"},
        ),
    ],
)
async def test_constrained_output(
    client: Client, inference: ScriptedInference, wanted: dict[str, Any], schema: dict[str, Any]
) -> None:
    assert (await post(client, response_format=wanted)).status_code == 200
    assert inference.calls[0].json_schema == schema


async def test_models(client: Client) -> None:
    listed = (await client.get("/v1/models")).json()
    assert [model["id"] for model in listed["data"]] == ["scripted"]
    for name in ("default", "scripted"):
        assert (await client.get(f"/v1/models/{name}")).json() == listed["data"][0]
        assert (await post(client, model=name)).status_code == 200
    for reply in (await client.get("/v1/models/org/other"), await post(client, model="org/other")):
        assert reply.status_code == 404
        assert reply.json()["error"]["code"] == "model_not_found"


def data_of(text: str) -> list[Any]:
    return [
        line if line == "[DONE]" else json.loads(line)
        for block in text.split("\n\n")
        if (line := block.removeprefix("data: "))
    ]


async def test_stream(client: Client) -> None:
    reply = await post(client, stream=True, stream_options={"include_usage": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    *chunks, usage, done = data_of(reply.text)
    assert done == "[DONE]"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert text == "Chris Pressey created Befunge [1]."
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 10)
    assert len({chunk["id"] for chunk in chunks}) == 1

    plain = data_of((await post(client, stream=True)).text)
    assert all("usage" not in chunk for chunk in plain[:-1])


async def test_an_error_before_the_stream_is_a_status(client: Client, inference: ScriptedInference) -> None:
    inference.error = PromptTooLongError("9000 tokens, 8192 fit", details={"tokens": 9000, "limit": 8192})
    for stream in (False, True):
        reply = await post(client, stream=stream)
        assert reply.status_code == 400
        assert reply.json()["error"]["details"] == {"tokens": 9000, "limit": 8192}


async def test_an_error_in_the_stream_is_its_last_event(client: Client, inference: ScriptedInference) -> None:
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1), 2
    *_, error, done = data_of((await post(client, stream=True)).text)
    assert error["error"]["code"] == "model_unavailable"
    assert done == "[DONE]"
    whole = await post(client)
    assert (whole.status_code, whole.headers["retry-after"]) == (503, "1")


async def test_the_owner_is_the_key_s(
    client: Client, settings: Settings, inference: ScriptedInference
) -> None:
    headers = {"x-api-key": make_key(settings, "irc", "user")}
    body = {"messages": HI}
    assert (await client.post("/v1/chat/completions", json=body, headers=headers)).status_code == 200
    assert inference.calls[0].owner.startswith("key-")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_timeout_inside_the_model_s_part_is_an_error_like_any_other(
    client: Client, inference: ScriptedInference, stream: bool
) -> None:
    """Holding back the status line ends with a TimeoutError as well."""
    inference.error = TimeoutError()
    reply = await asyncio.wait_for(post(client, stream=stream), PATIENCE)
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")


async def recorded(settings: Settings, request_id: str) -> RequestRecord:
    with opened_database(settings.data_dir / "hearth.db") as database:
        return await database.read(lambda connection: get_record(connection, request_id))


async def test_requests_are_recorded(
    client: Client, settings: Settings, inference: ScriptedInference
) -> None:
    url = "/v1/chat/completions"
    body = {"messages": HI, "seed": 3, "user": "al"}
    await client.post(url, json=body, headers={"X-Request-ID": "good"})
    inference.error, inference.error_after = ModelUnavailableError("gone", retry_after=1), 1
    await client.post(url, json={**body, "stream": True}, headers={"X-Request-ID": "bad"})
    good, bad = await recorded(settings, "good"), await recorded(settings, "bad")
    assert (good.kind, good.status, good.text, good.model) == ("chat", 200, "hi", "scripted")
    assert good.answer == "Chris Pressey created Befunge [1]."
    assert good.details == {"user": "al"}
    (generation,) = good.generations
    assert (generation.seed, generation.finish_reason, generation.prompt_tokens) == (3, "stop", 5)
    assert generation.messages == [{"role": "user", "content": "hi"}]
    assert (bad.status, bad.error, bad.answer) == (503, "model_unavailable", "Chris ")


async def test_what_is_not_to_be_stored_leaves_no_record(client: Client, settings: Settings) -> None:
    for name, more in (
        ("kept", {}),
        ("gone", {"store": False}),
        ("streamed", {"store": False, "stream": True}),
    ):
        headers = {"X-Request-ID": name}
        reply = await client.post("/v1/chat/completions", json={"messages": HI, **more}, headers=headers)
        assert reply.status_code == 200
    assert (await recorded(settings, "kept")).text == "hi"
    for name in ("gone", "streamed"):
        with pytest.raises(NotFoundError):
            await recorded(settings, name)
