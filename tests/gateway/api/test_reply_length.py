"""Replies that a small model would write on and on, over HTTP with a scripted model."""

from __future__ import annotations

import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.memory.answers.length import SMALL_TOKENS
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_conversations import replies, say, start
from tests.gateway.api.openai.test_chat import recorded
from tests.gateway.api.scripted import ScriptedInference


def rambler(call: GenerateCall) -> list[str]:
    limit = 600 if call.max_tokens is None else call.max_tokens
    return ["It ", "goes ", "on. "] * (limit // 3 + 1)


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(rambler)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """With the built-in model, a small one."""
    return changed(settings, "model", name="hearth-demo")


async def test_a_long_reply_of_a_small_model_ends_with_a_sentence(
    client: Client, inference: ScriptedInference, settings: Settings
) -> None:
    name = await start(client)
    said = await say(client, name, "Tell me about your day.")
    text = said["message"]["text"]
    assert text.endswith("goes on.") and SMALL_TOKENS <= len(text.split()) <= SMALL_TOKENS + 3
    assert said["finish_reason"] == "length" and not said["message"]["failed"]
    record = await recorded(settings, replies(inference)[0].id)
    assert (record.kind, record.status, record.error) == ("chat", 200, None)
    [made] = record.generations
    assert (made.finish_reason, made.output.strip()) == ("length", text)
    assert made.completion_tokens >= SMALL_TOKENS and made.prompt_tokens > 0
    assert inference.cancelled.is_set(), "the model stops"


async def test_what_the_message_or_the_conversation_asks_for_comes_first(
    client: Client, inference: ScriptedInference
) -> None:
    said = await say(client, await start(client), "Tell me a story.", max_tokens=400)
    assert len(said["message"]["text"].split()) > 390 and said["finish_reason"] == "length"
    code = await say(client, await start(client, kind="code"), "Write a program.")
    assert len(code["message"]["text"].split()) > 2 * SMALL_TOKENS
    inference.script = lambda call: ["Fine."]
    short = await say(client, await start(client), "Hello")
    assert short["finish_reason"] == "stop"


async def test_in_a_channel_a_limit_ends_with_a_sentence(
    client: Client, inference: ScriptedInference
) -> None:
    said = await say(client, await start(client, kind="channel"), "Tell me a story.", max_tokens=200)
    text = said["message"]["text"]
    assert text.endswith("on.") and 130 < len(text.split()) < 140 and said["finish_reason"] == "length"
    assert replies(inference)[-1].max_tokens == 200


async def test_a_setting_sets_the_length(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(changed(settings, "memory", reply_tokens=30), inference) as client:
        name = await start(client)
        said = await say(client, name, "Tell me about your day.", id="x1")
        assert 30 <= len(said["message"]["text"].split()) <= 33
        assert replies(inference)[-1].max_tokens == 45, "a sentence without an end is cut"
        again = await say(client, name, "Tell me about your day.", id="x1")
        assert again["message"] == said["message"] and again["finish_reason"] is None


async def test_other_endpoints_have_no_such_limit(client: Client) -> None:
    body = {"model": "default", "messages": [{"role": "user", "content": "Tell me about your day."}]}
    reply = (await client.post("/v1/chat/completions", json=body)).json()
    assert len(reply["choices"][0]["message"]["content"].split()) > 2 * SMALL_TOKENS
