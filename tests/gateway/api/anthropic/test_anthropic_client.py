"""Anthropic's official client against a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pydantic
import pytest

from gateway.base.errors import ModelUnavailableError, OverloadedError, PromptTooLongError
from gateway.config.settings import Settings
from model_host.protocol import Sampling
from tests.gateway.api.conftest import LiveServer, client_of, make_key
from tests.gateway.api.scripted import ScriptedInference

HI: list[Any] = [{"role": "user", "content": "hi"}]
ANSWER = "Chris Pressey created Befunge [1]."


@pytest.fixture
async def ai(server: LiveServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


async def test_message(ai: anthropic.AsyncAnthropic, inference: ScriptedInference) -> None:
    reply = await ai.messages.create(
        model="default",
        max_tokens=100,
        messages=HI,
        system="Be brief.",
        stop_sequences=["END"],
        metadata={"user_id": "u1"},
        extra_body={"temperature": 0.5, "top_k": 3, "top_p": 0.5},
    )
    assert (reply.type, reply.role, reply.model) == ("message", "assistant", "scripted")
    assert reply.id.startswith("msg_")
    (block,) = reply.content
    assert block.type == "text"
    assert block.text == ANSWER
    assert (reply.stop_reason, reply.stop_sequence) == ("end_turn", None)
    usage = reply.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (9, 2, 5)
    assert reply._request_id == reply.id.removeprefix("msg_")
    (call,) = inference.calls
    assert (call.max_tokens, call.stop) == (100, ["END"])
    assert call.sampling == Sampling(temperature=0.5, top_k=3, top_p=0.5)
    assert [(m.role, m.content) for m in call.messages or []] == [("system", "Be brief."), ("user", "hi")]


class Place(pydantic.BaseModel):
    """The type that replies are parsed into."""

    city: str


async def test_json_schema(ai: anthropic.AsyncAnthropic, inference: ScriptedInference) -> None:
    inference.script = lambda call: ['{"city"', ': "Paris"}']
    reply = await ai.messages.parse(model="default", max_tokens=50, messages=HI, output_format=Place)
    assert reply.parsed_output == Place(city="Paris")
    schema = inference.calls[0].json_schema
    assert isinstance(schema, dict) and schema["properties"]["city"]["type"] == "string"


async def test_stream(ai: anthropic.AsyncAnthropic) -> None:
    kinds, texts = [], []
    async with ai.messages.stream(model="default", max_tokens=5, messages=HI) as stream:
        async for event in stream:
            kinds.append(event.type)
            if event.type == "text":
                texts.append(event.text)
        reply = await stream.get_final_message()
    assert "".join(texts) == ANSWER
    assert [k for k in kinds if k != "text"] == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 5,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert (reply.stop_reason, reply.usage.output_tokens, reply.usage.input_tokens) == ("max_tokens", 5, 3)


async def test_raw_events(ai: anthropic.AsyncAnthropic, server: LiveServer) -> None:
    """Event names equal their types, and an early ping, which the client hides."""
    body = {"model": "default", "max_tokens": 5, "messages": HI, "stream": True}
    async with client_of(server) as client:
        reply = await client.post("/v1/messages", json=body)
    blocks = [block.splitlines() for block in reply.text.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in blocks]
    assert names[:3] == ["message_start", "ping", "content_block_start"]
    assert all(f'"type":"{name}"' in data for name, (_, data) in zip(names, blocks, strict=True))


async def test_a_reply_can_be_sent_back_unchanged(
    ai: anthropic.AsyncAnthropic, inference: ScriptedInference
) -> None:
    first = await ai.messages.create(model="default", max_tokens=9, messages=HI)
    history: list[Any] = [*HI, {"role": "assistant", "content": first.content}, *HI]
    await ai.messages.create(model="default", max_tokens=9, messages=history)
    sent = [(m.role, m.content) for m in inference.calls[-1].messages or []]
    assert sent == [("user", "hi"), ("assistant", ANSWER), ("user", "hi")]


async def test_count_tokens(ai: anthropic.AsyncAnthropic, inference: ScriptedInference) -> None:
    counted = await ai.messages.count_tokens(model="default", messages=HI, system="Be brief.")
    assert counted.input_tokens == 11
    assert inference.calls == []


async def test_errors(ai: anthropic.AsyncAnthropic, inference: ScriptedInference, settings: Settings) -> None:
    def kind(error: anthropic.APIStatusError) -> str:
        body: Any = error.body
        assert body["type"] == "error"
        assert body["request_id"] == error.request_id
        return str(body["error"]["type"])

    with pytest.raises(anthropic.NotFoundError) as missing:
        await ai.messages.create(model="claude", max_tokens=9, messages=HI)
    assert kind(missing.value) == "not_found_error"
    with pytest.raises(anthropic.BadRequestError, match="`max_tokens`") as bad:
        await ai.messages.create(model="default", max_tokens=0, messages=HI)
    assert kind(bad.value) == "invalid_request_error"
    inference.error = PromptTooLongError("9000 tokens, 8192 fit")
    with pytest.raises(anthropic.BadRequestError, match="8192"):
        await ai.messages.create(model="default", max_tokens=9, messages=HI, stream=True)
    inference.error = OverloadedError("full", retry_after=1)
    with pytest.raises(anthropic.InternalServerError) as full:
        await ai.messages.create(model="default", max_tokens=9, messages=HI)
    assert (kind(full.value), full.value.response.headers["retry-after"]) == ("overloaded_error", "1")
    inference.error = ModelUnavailableError("the file is corrupt")
    with pytest.raises(anthropic.InternalServerError) as corrupt:
        await ai.messages.create(model="default", max_tokens=9, messages=HI)
    assert kind(corrupt.value) == "api_error"
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1), 2
    texts = []
    with pytest.raises(anthropic.APIStatusError, match="the host died"):
        async with ai.messages.stream(model="default", max_tokens=9, messages=HI) as stream:
            async for text in stream.text_stream:
                texts.append(text)
    assert texts == ["Chris ", "Pressey "]
    inference.error = None
    key = make_key(settings, "me", "user")
    with pytest.raises(anthropic.AuthenticationError) as stranger:
        await ai.messages.create(model="default", max_tokens=9, messages=HI)
    assert kind(stranger.value) == "authentication_error"
    for known in (ai.with_options(api_key=key), ai.with_options(api_key=None, auth_token=key)):
        assert (await known.messages.create(model="default", max_tokens=9, messages=HI)).content


async def test_the_client_retries_only_temporary_errors(
    server: LiveServer, inference: ScriptedInference
) -> None:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=1) as ai:
        inference.error = ModelUnavailableError("the file is corrupt")
        with pytest.raises(anthropic.InternalServerError):
            await ai.messages.create(model="default", max_tokens=9, messages=HI)
        assert len(inference.calls) == 1
        inference.error = ModelUnavailableError("starting", retry_after=0.1)
        with pytest.raises(anthropic.InternalServerError):
            await ai.messages.create(model="default", max_tokens=9, messages=HI)
        assert len(inference.calls) == 3


async def test_a_client_that_leaves_ends_its_generation(
    ai: anthropic.AsyncAnthropic, inference: ScriptedInference
) -> None:
    inference.delay = 0.02
    inference.script = lambda call: ["word "] * 1000
    async with ai.messages.stream(model="default", max_tokens=2000, messages=HI) as stream:
        async for _ in stream:
            break
    await inference.cancelled.wait()
    assert inference.finished == 0
