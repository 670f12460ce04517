"""POST /v1/completions as OpenAI's official client uses it, against a real server."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings
from gateway.store.request_log import get_record
from model_host.protocol import Delta, TokenLogprob, TopLogprob
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

ANSWER = "Chris Pressey created Befunge [1]."


async def test_plain_text_goes_to_the_model(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    reply = await ai.completions.create(
        model="default", prompt="Once", max_tokens=9, stop="END", seed=3, temperature=0.1, user="u"
    )
    assert (reply.object, reply.model, reply.id.startswith("cmpl-")) == ("text_completion", "scripted", True)
    (choice,) = reply.choices
    assert (choice.index, choice.text, choice.finish_reason, choice.logprobs) == (0, ANSWER, "stop", None)
    assert reply.usage is not None
    assert (reply.usage.completion_tokens, reply.usage.total_tokens) == (5, 5 + reply.usage.prompt_tokens)
    (call,) = inference.calls
    assert (call.prompt, call.messages, call.max_tokens, call.stop) == ("Once", None, 9, ["END"])
    assert (call.sampling.seed, call.sampling.temperature) == (3, 0.1)


async def test_sixteen_tokens_unless_told_otherwise(
    ai: openai.AsyncOpenAI, inference: ScriptedInference
) -> None:
    await ai.completions.create(model="default", prompt="Once")
    assert inference.calls[0].max_tokens == 16


async def test_choices_are_in_the_order_of_the_prompts(
    ai: openai.AsyncOpenAI, inference: ScriptedInference
) -> None:
    inference.script = lambda call: [f"{call.prompt}/{call.sampling.seed}"]
    reply = await ai.completions.create(model="default", prompt=["a", "b"], n=2, best_of=2, seed=5)
    assert [(c.index, c.text) for c in reply.choices] == [(0, "a/5"), (1, "a/6"), (2, "b/5"), (3, "b/6")]
    assert reply.usage is not None
    # A prompt counts once, the output of every choice counts.
    one = await ai.completions.create(model="default", prompt="a")
    assert one.usage is not None
    assert reply.usage.prompt_tokens == 2 * one.usage.prompt_tokens
    assert reply.usage.completion_tokens == 4
    assert reply.usage.prompt_tokens_details is not None
    assert reply.usage.prompt_tokens_details.cached_tokens == 4


async def test_streams_tell_choices_apart(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.script = lambda call: [f"{call.prompt}", "!"]
    stream = await ai.completions.create(
        model="default", prompt=["a", "b"], echo=True, stream=True, stream_options={"include_usage": True}
    )
    texts, ends = {0: "", 1: ""}, {}
    chunks = [chunk async for chunk in stream]
    for chunk in chunks[:-1]:
        (choice,) = chunk.choices
        texts[choice.index] += choice.text
        if choice.finish_reason:
            ends[choice.index] = choice.finish_reason
        assert chunk.usage is None
    assert texts == {0: "aa!", 1: "bb!"}
    assert ends == {0: "stop", 1: "stop"}
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 4
    whole = await ai.completions.create(model="default", prompt=["a", "b"], echo=True)
    assert [choice.text for choice in whole.choices] == ["aa!", "bb!"]


async def test_tokens_are_prompts_too(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    await ai.completions.create(model="default", prompt=list(b"hi"))
    await ai.completions.create(model="default", prompt=[list(b"a"), list(b"b")])
    mixed: Any = [*b"hi", " you"]
    reply = await ai.completions.create(model="default", prompt=mixed, echo=True)
    assert reply.choices[0].text == f"hi you{ANSWER}"
    expected = [[104, 105], [97], [98], [104, 105, " you"]]
    assert [call.prompt for call in inference.calls] == expected


async def test_a_schema_reaches_the_model(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    """An addition: OpenAI supports it for chats only."""
    for wanted, schema in (
        ({"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}, {"type": "array"}),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "text"}, None),
    ):
        await ai.completions.create(model="default", prompt="x", extra_body={"response_format": wanted})
        assert inference.calls[-1].json_schema == schema
    with pytest.raises(openai.BadRequestError, match="response_format"):
        await ai.completions.create(
            model="default", prompt="x", extra_body={"response_format": {"type": "json_schema"}}
        )


async def test_logprobs(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    top = [TopLogprob("x", [120], -0.1), TopLogprob("x", [120], -0.2)]
    pieces = [
        TokenLogprob("h", [104], -1.0, top),
        TokenLogprob("\N{REPLACEMENT CHARACTER}", [0xC3], -2.0, []),
        TokenLogprob("\N{REPLACEMENT CHARACTER}", [0xA9], -3.0, []),
        TokenLogprob("!", [33], -4.0, []),
    ]
    inference.script = lambda call: [
        Delta(call.id, "h", 1, pieces[:1]),
        Delta(call.id, "é", 2, pieces[1:3]),
        Delta(call.id, "!", 1, pieces[3:]),
    ]
    reply = await ai.completions.create(model="default", prompt="x", logprobs=2)
    logprobs = reply.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.token_logprobs == [-1.0, -2.0, -3.0, -4.0]
    assert logprobs.text_offset == [0, 1, 1, 2]
    assert logprobs.top_logprobs is not None
    assert logprobs.top_logprobs[0] == {"x": -0.1, "h": -1.0}
    assert inference.calls[0].logprobs == 2
    offsets: list[int] = []
    stream = await ai.completions.create(model="default", prompt="x", logprobs=0, stream=True)
    async for chunk in stream:
        if chunk.choices[0].logprobs:
            offsets += chunk.choices[0].logprobs.text_offset or []
    assert offsets == [0, 1, 1, 2]
    assert inference.calls[1].logprobs == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"best_of": 2}, "best_of"),
        ({"echo": True, "suffix": "end"}, "echo"),
        ({"logprobs": 6}, "logprobs"),
        ({"max_tokens": -2}, "max_tokens"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": [[1], 1]}, "prompt"),
        ({"prompt": ["a"] * 5, "n": 8}, "prompt"),
        ({"prompt": [-1]}, "prompt[0]"),
        ({"prompt": None}, "prompt"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"messages": []}, "messages"),
        ({"model": "gpt-9"}, "model"),
    ],
)  # fmt: skip
async def test_what_cannot_be_honoured_is_refused_by_name(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], param: str
) -> None:
    refused = await client.post("/v1/completions", json={"model": "default", "prompt": "x", **fields})
    error = refused.json()["error"]
    assert (refused.status_code in (400, 404), error["param"]) == (True, param), error
    assert inference.calls == []


async def test_what_asks_for_nothing_is_accepted(ai: openai.AsyncOpenAI) -> None:
    neutral = {"suffix": "", "best_of": 1, "logit_bias": {}, "echo": False, "n": 1, "stop": None}
    reply = await ai.completions.create(model="default", prompt="x", extra_body=neutral)
    assert reply.choices[0].text == ANSWER


async def test_errors(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.error = ModelUnavailableError("the host died", retry_after=1)
    with pytest.raises(openai.InternalServerError):
        await ai.completions.create(model="default", prompt="x", stream=True)
    inference.error_after = 2
    stream = await ai.completions.create(model="default", prompt="x", stream=True)
    with pytest.raises(openai.APIError, match="the host died"):
        assert [chunk async for chunk in stream] == []


async def test_the_log_has_every_prompt(ai: openai.AsyncOpenAI, settings: Settings) -> None:
    reply = await ai.completions.create(model="default", prompt=["first", "second"], user="u")
    with opened_database(settings.data_dir / "hearth.db") as database:
        record = database.read_sync(lambda c: get_record(c, reply.id.removeprefix("cmpl-")))
    assert (record.kind, record.status, record.text, record.details) == (
        "generate",
        200,
        "first",
        {"user": "u"},
    )
    prompts = [made.messages[0]["content"] for made in record.generations]
    assert prompts == ["first", "second"]


async def test_no_model_is_the_only_one(client: Client) -> None:
    for path, body in (("/v1/completions", {"prompt": "x"}), ("/v1/responses", {"input": "x"})):
        for fields in ({}, {"model": None}):
            reply = await client.post(path, json=body | fields)
            assert (reply.status_code, reply.json().get("model")) == (200, "scripted"), reply.text
