"""Conversations over HTTP with a scripted model: life cycle, paging, compaction, failure."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from tests.gateway.api.conftest import Client, LiveServer, changed, client_of, connected, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until


def text_of(call: GenerateCall) -> str:
    return "\n".join(
        m.content if isinstance(m.content, str) else "".join(p.text for p in m.content)
        for m in call.messages or []
    )


def replies(inference: ScriptedInference) -> list[GenerateCall]:
    """The calls of replies; background calls have another lane."""
    return [call for call in inference.calls if call.lane == "interactive"]


def talker(call: GenerateCall) -> list[str]:
    """Summaries repeat the words of their source with a digit or a capital; replies are short."""
    text = text_of(call)
    if "Pause the conversation" in text or text.startswith("Summarize the conversation"):
        kept = dict.fromkeys(re.findall(r"\w*[A-Z0-9]\w*", text))
        summary = ". ".join(kept)[:600]
        return [
            msgspec.json.encode({"ConversationSummary": summary}).decode()
            if call.json_schema
            else f"{summary}."
        ]
    return ["So ", "be ", "it."]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


async def start(client: Client, **fields: Any) -> str:
    reply = await client.post("/v1/conversations", json=fields)
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


async def say(client: Client, conversation: str, text: str, **fields: Any) -> dict[str, Any]:
    reply = await client.post(f"/v1/conversations/{conversation}/messages", json={"text": text, **fields})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def test_a_conversation_from_start_to_end(client: Client) -> None:
    wendy = await client.post("/v1/assistants", json={"name": "Wendy", "biography": "A bard."})
    name = await start(
        client, title="Trains", assistant=wendy.json()["id"], policy="ceiling", instructions="Be brief."
    )
    said = await say(client, name, "When does the train to Huế leave?", id="mine-1")
    assert said["message"]["text"] == "So be it."
    assert (said["accepted"]["id"], said["accepted"]["round"]) == ("mine-1", 1)
    assert said["compaction"] == "none"
    assert said["budget"]["total"] <= said["budget"]["limit"]
    shown = (await client.get(f"/v1/conversations/{name}")).json()
    assert (shown["title"], shown["kind"], shown["policy"]) == ("Trains", "chat", "ceiling")
    assert [each["id"] for each in (await client.get("/v1/conversations")).json()["data"]] == [name]
    log = (await client.get(f"/v1/conversations/{name}/messages")).json()
    assert [each["role"] for each in log["data"]] == ["user", "assistant"] and log["next"] is None
    context = (await client.get(f"/v1/conversations/{name}/context")).json()
    assert [block["name"] for block in context["blocks"]] == ["core", "biography", "messages"]
    assert context["blocks"][1]["text"] == "You are Wendy.\nA bard."
    assert "Be brief." in context["blocks"][0]["text"]
    assert (await client.delete(f"/v1/conversations/{name}")).json() == {"id": name, "deleted": True}
    assert (await client.get(f"/v1/conversations/{name}")).status_code == 404


async def test_sending_again_is_harmless(client: Client, inference: ScriptedInference) -> None:
    name = await start(client)
    first = await say(client, name, "Hello", id="x1")
    again = await say(client, name, "Hello", id="x1")
    assert again["message"] == first["message"]
    assert len((await client.get(f"/v1/conversations/{name}/messages")).json()["data"]) == 2
    assert sum(call.lane == "interactive" for call in inference.calls) == 1
    reply = await client.post(f"/v1/conversations/{name}/messages", json={"text": "Bye", "id": "x1"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "duplicate_message")
    other = await start(client)
    assert (await say(client, other, "Hello", id="x1"))["message"]["text"], "an id counts in its conversation"


async def post(client: Client, conversation: str, text: str, **fields: Any) -> Any:
    return await client.post(f"/v1/conversations/{conversation}/messages", json={"text": text, **fields})


async def test_a_message_without_a_reply_is_never_given_another_ones(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client)
    inference.error = ModelUnavailableError("the host died", retry_after=1.0)
    assert (await post(client, name, "First", id="x1")).status_code == 503
    inference.error = None
    second = await say(client, name, "Second", id="x2")
    refused = await post(client, name, "First", id="x1")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (409, "conversation_went_on", "id")
    assert "`x1`" in error["message"] and "new id" in error["message"]
    assert (await say(client, name, "Second", id="x2"))["message"] == second["message"]
    assert (await say(client, name, "First", id="x3"))["message"]["seq"] > second["message"]["seq"]


async def test_a_message_without_a_reply_gets_one_when_only_lines_of_others_came_since(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client, kind="channel")
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1.0), 2
    assert (await post(client, name, "When?", id="x1", speaker="ann")).status_code == 503
    inference.error = None
    await say(client, name, "Hello", id="x2", speaker="bob", reply=False)
    first = await say(client, name, "When?", id="x1", speaker="ann")
    assert first["message"]["text"] == "So be it."
    assert "ann: When?\nbob: Hello" in text_of(replies(inference)[-1])
    again = await say(client, name, "When?", id="x1", speaker="ann")
    assert again["message"] == first["message"], "although another line stands between them"
    kept = await say(client, name, "Hello", id="x2", speaker="bob", reply=False)
    assert kept["message"] is None, "nobody replied to it"


async def test_pages_go_back_in_time(client: Client) -> None:
    name = await start(client)
    for number in range(5):
        await say(client, name, f"line {number}")
    seen: list[str] = []
    cursor: int | None = None
    while True:
        params = {"limit": 3} | ({"before": cursor} if cursor else {})
        got = (await client.get(f"/v1/conversations/{name}/messages", params=params)).json()
        seen = [each["text"] for each in got["data"]] + seen
        if got["next"] is None:
            break
        cursor = got["next"]
    assert seen == [text for n in range(5) for text in (f"line {n}", "So be it.")]
    for wrong in ("limit=0", "limit=201", "before=x", "limit=-1"):
        reply = await client.get(f"/v1/conversations/{name}/messages?{wrong}")
        assert reply.status_code == 400 and reply.json()["error"]["param"] in wrong


async def test_the_model_sees_what_the_log_has(client: Client, inference: ScriptedInference) -> None:
    name = await start(client)
    said = await say(client, name, "my key is sk-abcdefghijklmnopqrstuvwxyz123456")
    assert said["accepted"]["redactions"] == 1 and "[redacted]" in said["accepted"]["text"]
    await say(client, name, "And now?")
    assert ["sk-abc" in text_of(call) for call in replies(inference)] == [True, False], (
        "it sees a secret once"
    )


async def test_events_of_a_reply(server: LiveServer, inference: ScriptedInference) -> None:
    async with client_of(server) as client:
        name = await start(client)
        url = f"/v1/conversations/{name}/messages"
        async with client.stream("POST", url, json={"text": "Hi", "stream": True}) as reply:
            body = (await reply.aread()).decode()
    assert re.findall(r"event: (\w+)", body) == ["accepted", "budget", "delta", "delta", "delta", "done"]


@pytest.fixture
def small(settings: Settings) -> Settings:
    return changed(settings, "memory", context=1200, ceiling=500, floor=220, answer_tokens=100)


@pytest.fixture
async def compacting(small: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    async with in_process(small, inference) as made:
        yield made


async def test_a_long_conversation_is_compacted_behind_the_reply(compacting: Client) -> None:
    name = await start(compacting)
    queued = []
    for number in range(40):
        said = await say(compacting, name, f"item {number} costs {number * 37 + 1000} dong " * 6)
        queued.append(said["compaction"])
        assert said["budget"]["total"] <= said["budget"]["limit"]
    assert "queued" in queued

    async def summaries() -> list[dict[str, Any]]:
        got = await compacting.get(f"/v1/conversations/{name}/summaries")
        return list(got.json()["data"])

    found = await until(summaries)
    live_ones = [each for each in found if each["superseded_by"] is None]
    assert {each["level"] for each in live_ones} <= {"month", "today", "now"}
    # An extract, where the messages come faster than the summaries.
    assert live_ones[0]["prompt_name"] in ("summary_now", "summary_fold", "history_summary", "extract")
    context = (await compacting.get(f"/v1/conversations/{name}/context")).json()
    assert "messages" in [block["name"] for block in context["blocks"]]
    assert any(each["why"].startswith(("summarized", "extracted")) for each in context["left_out"])


async def test_compact_and_rollover_on_demand(compacting: Client) -> None:
    name = await start(compacting, title="long")
    for number in range(12):
        await say(compacting, name, f"Fact {number}: Huế is {number * 11 + 100} km away")
    assert (await compacting.post(f"/v1/conversations/{name}/compact")).json()["summaries"] >= 1
    new = (await compacting.post(f"/v1/conversations/{name}/rollover")).json()
    assert (new["previous"], new["title"]) == (name, "long")
    old = (await compacting.get(f"/v1/conversations/{name}")).json()
    assert old["archived_at"] is not None
    context = (await compacting.get(f"/v1/conversations/{new['id']}/context")).json()
    assert "221" in "".join(block["text"] for block in context["blocks"])
    said = await say(compacting, new["id"], "go on")
    assert said["message"]["text"] == "So be it."


async def test_a_message_larger_than_the_context_is_read_in_parts(
    compacting: Client, inference: ScriptedInference
) -> None:
    name = await start(compacting)
    said = await say(compacting, name, "The house is 4711. " * 1500)
    assert said["message"]["text"] == "So be it."
    assert any("too long" in each["why"] for each in said["budget"]["left_out"])
    log = (await compacting.get(f"/v1/conversations/{name}/messages")).json()["data"]
    assert len(log[0]["text"]) > 20_000, "the log has it whole"
    reply = next(call for call in inference.calls if call.max_tokens == 100 and call.lane == "interactive")
    assert "4711" in text_of(reply)


async def test_a_broken_reply_stays_in_the_log_and_out_of_the_prompt(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client)
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1.0), 2
    reply = await client.post(f"/v1/conversations/{name}/messages", json={"text": "Hello"})
    assert reply.status_code == 503 and reply.headers["Retry-After"]
    inference.error = None
    said = await say(client, name, "Again")
    assert said["accepted"]["round"] == 2 or said["accepted"]["round"] == 1
    log = (await client.get(f"/v1/conversations/{name}/messages")).json()["data"]
    assert [(each["role"], each["failed"]) for each in log][:2] == [("user", False), ("assistant", True)]
    assert "So be" not in text_of(replies(inference)[-1])


async def test_messages_wait_for_their_turn(settings: Settings, inference: ScriptedInference) -> None:
    inference.delay = 0.05
    async with connected(settings, inference) as client:
        name = await start(client)
        await asyncio.gather(*(say(client, name, f"line {n}") for n in range(4)))
        log = (await client.get(f"/v1/conversations/{name}/messages")).json()["data"]
    assert [each["role"] for each in log] == ["user", "assistant"] * 4


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"text": ""}, "text"),
        ({"text": "   "}, "text"),
        ({}, "text"),
        ({"text": "x", "color": 1}, "color"),
        ({"text": "x", "id": "a b"}, "id"),
        ({"text": "x", "max_tokens": 0}, "max_tokens"),
        ({"text": "x", "role": "system", "reply": False}, "role"),
        ({"text": "x", "role": "assistant"}, "role"),
    ],
)
async def test_wrong_messages_name_the_field(client: Client, body: dict[str, Any], param: str) -> None:
    name = await start(client)
    reply = await client.post(f"/v1/conversations/{name}/messages", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_lines_can_be_stored_without_a_reply(client: Client, inference: ScriptedInference) -> None:
    name = await start(client, kind="channel")
    for nick in ("ann", "bob"):
        said = await say(client, name, f"hello from {nick}", speaker=nick, reply=False)
        assert said["message"] is None
    await say(client, name, "what did we say?", speaker="ann")
    assert "ann: hello from ann\nbob: hello from bob\nann: what did we say?" in text_of(
        replies(inference)[-1]
    )


async def test_what_the_assistant_said_elsewhere_is_kept_as_its_own(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client, kind="channel")
    await say(client, name, "who made Befunge?", speaker="ann", reply=False)
    await say(client, name, "Chris Pressey.", role="assistant", reply=False)
    await say(client, name, "and when?", speaker="ann")
    turns = [(each.role, each.content) for each in replies(inference)[-1].messages or []]
    assert turns[1:] == [
        ("user", "ann: who made Befunge?"),
        ("assistant", "Chris Pressey."),
        ("user", "ann: and when?"),
    ]


async def test_a_speaker_is_forgotten_with_all_that_came_from_them(
    compacting: Client, inference: ScriptedInference
) -> None:
    """Erases lines, replies, summaries and recorded prompts; messages of others stay and are summarized again."""
    name = await start(compacting, kind="channel", policy="ceiling", participants=["ann", "bob"])
    for number in range(12):
        await say(compacting, name, f"Plan {number}: Huế {number * 11 + 100}", speaker="bob")
        await say(compacting, name, f"Secret {number}: Đà-Lạt {number * 7 + 900}", speaker="ann")
    await compacting.post(f"/v1/conversations/{name}/compact")
    context = (await compacting.get(f"/v1/conversations/{name}/context")).json()
    assert "Đà" in str(context["blocks"]), "there is something to forget"
    url = f"/v1/conversations/{name}/messages"
    missing = await compacting.delete(url)
    assert (missing.status_code, missing.json()["error"]["param"]) == (400, "speaker")
    gone = await compacting.delete(url, params={"speaker": "ann"})
    assert gone.json() == {"id": name, "messages": 24}
    log = (await compacting.get(url)).json()["data"]
    assert [(m["role"], m["speaker"]) for m in log] == [("user", "bob"), ("assistant", "")] * 12
    await compacting.post(f"/v1/conversations/{name}/compact")
    for part in ("summaries", "context", "messages"):
        shown = (await compacting.get(f"/v1/conversations/{name}/{part}")).text
        assert "Secret" not in shown and "Đà" not in shown, part
    context = (await compacting.get(f"/v1/conversations/{name}/context")).json()
    assert "Huế" in str(context["blocks"])
    assert (await compacting.get(f"/v1/conversations/{name}")).json()["participants"] == ["bob"]
    assert (await compacting.delete(url, params={"speaker": "ann"})).json()["messages"] == 0
    said = await say(compacting, name, "Still there?", speaker="bob")
    assert said["message"]["text"] == "So be it."


async def test_every_reply_to_a_forgotten_speaker_goes_wherever_it_stands(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client, kind="channel", participants=["ann", "bob"])
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1.0), 2
    for _ in range(2):
        assert (await post(client, name, "When?", id="x1", speaker="ann")).status_code == 503
    inference.error = None
    await say(client, name, "Hello", speaker="bob", reply=False)
    await say(client, name, "When?", id="x1", speaker="ann")
    url = f"/v1/conversations/{name}/messages"
    assert len((await client.get(url)).json()["data"]) == 5
    assert (await client.delete(url, params={"speaker": "ann"})).json()["messages"] == 4
    assert [each["text"] for each in (await client.get(url)).json()["data"]] == ["Hello"]
