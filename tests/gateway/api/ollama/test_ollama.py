"""Ollama's bodies: each field is honoured or refused by name, in Ollama's envelope."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.scripted import ScriptedInference

HI = [{"role": "user", "content": "hi"}]
CALL = {"function": {"name": "add", "arguments": {"a": 1}}}


async def chat(client: Client, **fields: Any) -> Any:
    return await client.post(
        "/api/chat", json={"model": "default", "messages": HI, "stream": False, **fields}
    )


async def generate(client: Client, **fields: Any) -> Any:
    return await client.post(
        "/api/generate", json={"model": "default", "prompt": "hi", "stream": False, **fields}
    )


NEUTRAL: list[dict[str, Any]] = [
    {"think": False},
    {"think": None},
    {"logprobs": False, "top_logprobs": 0},
    {"truncate": False, "shift": False},
    {"template": ""},
    {"tools": None},
    {"format": ""},
    {"options": {}},
    {"options": None},
    {
        "options": {
            "num_ctx": 8192,
            "mirostat": 0,
            "tfs_z": 1.0,
            "typical_p": 1,
            "top_k": -1,
            "numa": False,
            "use_mmap": True,
        }
    },
    {"messages": [{"role": "user", "content": "hi", "images": [], "thinking": ""}]},
    {"messages": [{"role": "user", "content": "hi", "images": None, "tool_calls": []}]},
]


@pytest.mark.parametrize("fields", NEUTRAL)
async def test_neutral_fields_are_accepted(client: Client, fields: dict[str, Any]) -> None:
    assert (await chat(client, **fields)).status_code == 200


async def test_the_same_for_generate(client: Client) -> None:
    fields = {
        "suffix": "",
        "images": [],
        "context": [],
        "raw": False,
        "system": "",
        "width": 0,
        "template": None,
    }
    assert (await generate(client, **fields)).status_code == 200


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"template": "{{ .Prompt }}"}, "template"),
        ({"keep_live": 5}, "keep_live"),
        ({"keep_alive": "later"}, "keep_alive"),
        ({"model": ""}, "model"),
        ({"format": "xml"}, "format"),
        ({"format": ["json"]}, "format"),
        ({"options": {"temprature": 1}}, "options.temprature"),
        ({"options": {"mirostat": 2}}, "options.mirostat"),
        ({"options": {"temperature": 9}}, "options.temperature"),
        ({"options": {"num_predict": 0}}, "options.num_predict"),
        ({"options": {"num_predict": -3}}, "options.num_predict"),
        ({"options": {"seed": -2}}, "options.seed"),
        ({"options": {"repeat_last_n": -2}}, "options.repeat_last_n"),
        ({"options": {"stop": "END"}}, "options.stop"),
        ({"options": []}, "options"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "messages[0].images"),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": [CALL]}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "user", "content": "x", "tool_name": "f"}]}, "messages[0].tool_name"),
        ({"messages": [{"role": "tool", "content": "x", "tool_name": "f"}]}, "messages[0]"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"tools": [{"type": "browser", "function": {"name": "f"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": "f"}}], "format": "json"}, "format"),
    ],
)
async def test_refusals_name_the_field(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], named: str
) -> None:
    reply = await chat(client, **fields)
    assert reply.status_code == 400
    body = reply.json()
    assert f"`{named}`" in body["error"]
    assert body["request_id"] == reply.headers["x-request-id"]
    assert inference.calls == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"suffix": "end", "system": "x"}, "system"),
        ({"images": ["aGk="]}, "images"),
        ({"context": [1, 2]}, "context"),
        ({"template": "x"}, "template"),
        ({"raw": True, "system": "x"}, "system"),
        ({"messages": HI}, "messages"),
        ({"width": 512}, "width"),
    ],
)
async def test_refusals_of_generate(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], named: str
) -> None:
    reply = await generate(client, **fields)
    assert (reply.status_code, inference.calls) == (400, [])
    assert f"`{named}`" in reply.json()["error"]


async def test_a_context_too_large_to_look_back_on(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "model", context=16_384)
    async with in_process(settings, inference) as client:
        reply = await chat(client, options={"repeat_last_n": -1})
        assert (reply.status_code, "16384" in reply.json()["error"]) == (400, True)
        assert (await chat(client, options={"repeat_last_n": 8192, "num_ctx": 16_384})).status_code == 200


async def test_which_call_a_tool_message_answers(client: Client, inference: ScriptedInference) -> None:
    again = {"function": {"name": "add", "arguments": {"a": 2}, "index": 1}, "id": "c2", "type": "function"}
    messages = [
        *HI,
        {"role": "assistant", "content": "", "tool_calls": [CALL, again]},
        {"role": "tool", "content": "two", "tool_call_id": "c2"},
        {"role": "tool", "content": "one", "tool_name": "add"},
    ]
    assert (await chat(client, messages=messages)).status_code == 200
    _, asked, two, one = inference.calls[0].messages or []
    assert [(c.id, c.name, c.arguments) for c in asked.tool_calls] == [
        ("call_1_0", "add", {"a": 1}),
        ("c2", "add", {"a": 2}),
    ]
    assert [(m.role, m.content, m.tool_call_id, m.name) for m in (two, one)] == [
        ("tool", "two", "c2", "add"),
        ("tool", "one", "call_1_0", "add"),
    ]
    twice = [*messages, {"role": "tool", "content": "?", "tool_name": "add"}]
    assert "`messages[4]`" in (await chat(client, messages=twice)).json()["error"]


async def test_show_needs_a_name(client: Client) -> None:
    assert (
        await client.post("/api/show", json={"name": "default:latest", "verbose": True})
    ).status_code == 200
    assert (await client.post("/api/show", json={"model": "llama3"})).status_code == 404
    assert "`model`" in (await client.post("/api/show", json={})).json()["error"]
    assert "`system`" in (await client.post("/api/show", json={"model": "x", "system": "y"})).json()["error"]


async def test_requests_are_recorded(client: Client, settings: Settings) -> None:
    from tests.gateway.api.openai.test_chat import recorded

    headers = {"X-Request-ID": "one"}
    body = {"model": "default", "messages": HI, "options": {"seed": 9}}
    await client.post("/api/chat", json=body, headers=headers)
    record = await recorded(settings, "one")
    assert (record.text, record.answer) == ("hi", "Chris Pressey created Befunge [1].")
    assert record.generations[0].seed == 9
    raw = {"model": "default", "prompt": "once upon", "raw": True}
    await client.post("/api/generate", json=raw, headers={"X-Request-ID": "two"})
    record = await recorded(settings, "two")
    assert record.text == "once upon"
    assert record.generations[0].messages == [{"role": "prompt", "content": "once upon"}]
