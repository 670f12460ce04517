"""OpenAI's official client against a real server."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from gateway.base.errors import ModelUnavailableError, OverloadedError
from gateway.config.settings import Settings
from tests.gateway.api.conftest import LiveServer, make_key
from tests.gateway.api.scripted import ScriptedInference

HI: list[Any] = [{"role": "user", "content": "hi"}]


async def test_completion(ai: openai.AsyncOpenAI) -> None:
    reply = await ai.chat.completions.create(model="default", messages=HI, seed=1, stop=["END"])
    assert reply.choices[0].message.content == "Chris Pressey created Befunge [1]."
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.prompt_tokens_details is not None
    assert reply.usage.prompt_tokens_details.cached_tokens == 2


async def test_length(ai: openai.AsyncOpenAI) -> None:
    reply = await ai.chat.completions.create(model="default", messages=HI, max_tokens=5)
    assert reply.choices[0].finish_reason == "length"


async def test_streaming(ai: openai.AsyncOpenAI) -> None:
    stream = await ai.chat.completions.create(
        model="default", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "Chris Pressey created Befunge [1]."
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


async def test_a_reply_can_be_sent_back_unchanged(
    ai: openai.AsyncOpenAI, inference: ScriptedInference
) -> None:
    first = await ai.chat.completions.create(model="default", messages=HI)
    history = [*HI, first.choices[0].message.model_dump(), *HI]
    await ai.chat.completions.create(model="default", messages=history)
    assert [message.role for message in inference.calls[-1].messages or []] == ["user", "assistant", "user"]


async def test_json_schema(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.script = lambda call: ['{"city"', ': "Paris"}']
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    reply = await ai.chat.completions.create(
        model="default",
        messages=HI,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "place", "schema": schema, "strict": True},
        },
    )
    assert reply.choices[0].message.content == '{"city": "Paris"}'
    assert inference.calls[0].json_schema == schema


async def test_extensions(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    extra = {"top_k": 5, "min_p": 0.1, "priority": "background", "keep_alive": "1h"}
    await ai.chat.completions.create(model="default", messages=HI, extra_body=extra)
    (call,) = inference.calls
    assert (call.sampling.top_k, call.lane, call.keep_alive) == (5, "background", 3600.0)


async def test_errors(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        await ai.chat.completions.create(model="gpt-9", messages=HI)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as bad:
        await ai.chat.completions.create(model="default", messages=HI, modalities=["audio"])
    assert (bad.value.code, bad.value.param) == ("unsupported_field", "modalities")
    assert bad.value.request_id
    inference.error = OverloadedError("full", retry_after=1)
    with pytest.raises(openai.InternalServerError):
        await ai.chat.completions.create(model="default", messages=HI)
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1), 2
    stream = await ai.chat.completions.create(model="default", messages=HI, stream=True)
    with pytest.raises(openai.APIError, match="the host died"):
        assert [chunk async for chunk in stream] == []


async def test_the_client_retries_only_temporary_errors(
    server: LiveServer, inference: ScriptedInference
) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=1) as ai:
        inference.error = ModelUnavailableError("the file is corrupt")
        with pytest.raises(openai.InternalServerError):
            await ai.chat.completions.create(model="default", messages=HI)
        assert len(inference.calls) == 1
        inference.error = ModelUnavailableError("starting", retry_after=0.1)
        with pytest.raises(openai.InternalServerError):
            await ai.chat.completions.create(model="default", messages=HI)
        assert len(inference.calls) == 3


async def test_models_and_keys(ai: openai.AsyncOpenAI, settings: Settings) -> None:
    assert [model.id async for model in ai.models.list()] == ["scripted"]
    assert (await ai.models.retrieve("default")).id == "scripted"
    key = make_key(settings, "me", "user")
    with pytest.raises(openai.AuthenticationError):
        await ai.models.list()
    assert (await ai.with_options(api_key=key).models.list()).data[0].id == "scripted"
