"""POST /ask: forms of questions and replies, and limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.api.ask.routes import as_text, reply_kind
from gateway.ask.types import AskResult, Budget, Citation
from gateway.base.errors import ModelUnavailableError
from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

TEXT = {"Content-Type": "text/plain"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "*/*"}
QUESTION = "Who created Befunge?"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """These tests answer from the sample wiki."""
    return changed(settings, "wiki", load_sample=True)


def last_question(inference: ScriptedInference) -> str:
    """The end of the last prompt."""
    messages = inference.calls[-1].messages
    assert messages is not None
    content = messages[-1].content
    return content if isinstance(content, str) else "".join(part.text for part in content)


async def test_json_in_json_out(client: Client) -> None:
    reply = await client.post("/ask", json={"question": f"  {QUESTION}\n"}, headers={"X-Request-ID": "q-1"})
    assert reply.status_code == 200
    body = reply.json()
    assert set(body) >= {"id", "answer", "citations", "search_terms", "skipped", "budget", "timings", "model"}
    assert body["id"] == reply.headers["x-request-id"] == "q-1"
    assert "Chris Pressey" in body["answer"]
    assert body["search_terms"] == [], "the question's own words have found the answer"
    assert set(body["citations"][0]) == {"n", "title", "section", "url", "revision"}


async def test_plain_text_in_and_out(client: Client, inference: ScriptedInference) -> None:
    reply = await client.post("/ask", content=QUESTION, headers=TEXT)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    answer, *rest = reply.text.splitlines()
    assert answer.startswith("Chris Pressey created Befunge")
    assert rest[-1].startswith("[1] Befunge")
    assert "http" in rest[-1]
    assert QUESTION in last_question(inference)


@pytest.mark.parametrize(
    ("body", "headers", "question"),
    [
        (QUESTION, FORM, QUESTION),
        ("What does a=b+c mean in 100% of cases?", FORM, "What does a=b+c mean in 100% of cases?"),
        ("question=Who+made+%3E%3C%3E%3F&style=plain", FORM, "Who made ><>?"),
        ('{"question": "Who made Befunge?"}', FORM, "Who made Befunge?"),
        ('{"question": "not JSON here"}', TEXT, '{"question": "not JSON here"}'),
        (QUESTION, {}, QUESTION),
        ("Wer hat Whitespace erfunden – und weshalb?", TEXT, "Wer hat Whitespace erfunden – und weshalb?"),
    ],
)
async def test_bodies_that_curl_sends(
    client: Client, inference: ScriptedInference, body: str, headers: dict[str, str], question: str
) -> None:
    reply = await client.post("/ask", content=body.encode(), headers=headers)
    assert reply.status_code == 200, reply.text
    assert question in last_question(inference)
    assert reply.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({}, 400, "question"),
        ({"question": " \n\t"}, 400, "question"),
        ({"question": 5}, 400, "question"),
        ({"question": QUESTION, "styel": "irc"}, 400, "styel"),
        ({"question": QUESTION, "priority": "urgent"}, 400, "priority"),
        ({"question": QUESTION, "keep_alive": "soon"}, 400, "keep_alive"),
        ({"question": QUESTION, "keep_alive": True}, 400, "keep_alive"),
        ({"question": "x" * 4097}, 413, "question"),
        ({"question": "é" * 2049}, 413, "question"),
    ],
)
async def test_refusals_name_the_field(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], status: int, param: str
) -> None:
    reply = await client.post("/ask", json=fields)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)
    assert inference.calls == []


@pytest.mark.parametrize("body", [b"", b"  \n", b"\xff\xfe", b"question=", b"question=a&question=b"])
async def test_bad_text(client: Client, inference: ScriptedInference, body: bytes) -> None:
    assert (await client.post("/ask", content=body, headers=FORM)).status_code == 400
    assert inference.calls == []


async def test_the_longest_question_is_answered(client: Client) -> None:
    assert (await client.post("/ask", content="x" * 4096, headers=TEXT)).status_code == 200


@pytest.mark.parametrize(
    ("given", "seconds"), [(0, 0.0), (90, 90.0), ("10m", 600.0), ("1h30m", 5400.0), (-1, -1.0), ("-1m", -1.0)]
)
async def test_keep_alive_and_priority_reach_the_model(
    client: Client, inference: ScriptedInference, given: float | str, seconds: float
) -> None:
    fields = {"question": QUESTION, "keep_alive": given, "priority": "background"}
    assert (await client.post("/ask", json=fields)).status_code == 200
    assert set(inference.kept[:-1]) == {None}, "told in between, 0 would unload the model between two steps"
    assert inference.kept[-1] == seconds
    assert {call.lane for call in inference.calls} == {"background"}
    assert {call.owner for call in inference.calls} == {"local"}


async def test_too_many_at_once(settings: Settings, inference: ScriptedInference) -> None:
    inference.delay = 0.05
    settings = changed(settings, "ask", max_concurrent=2)
    async with in_process(settings, inference) as client:
        running = [asyncio.create_task(client.post("/ask", content=QUESTION, headers=TEXT)) for _ in range(2)]
        await until(lambda: inference.running == 2)
        for accept in ("*/*", "text/event-stream"):
            third = await client.post("/ask", content=QUESTION, headers={**TEXT, "Accept": accept})
            assert third.status_code == 503
            assert int(third.headers["retry-after"]) >= 1
            assert third.json()["error"]["code"] == "overloaded"
        assert [reply.status_code for reply in await asyncio.gather(*running)] == [200, 200]
        assert (await client.post("/ask", content=QUESTION, headers=TEXT)).status_code == 200


async def test_the_deadline(settings: Settings, inference: ScriptedInference) -> None:
    inference.delay = 60.0
    # Enough for the search, after which the model is asked.
    settings = changed(settings, "ask", deadline_seconds=2.0, target_seconds=2.0)
    async with in_process(settings, inference) as client:
        reply = await client.post("/ask", content=QUESTION, headers=TEXT)
        assert reply.status_code == 504
        assert reply.json()["error"]["code"] == "deadline_exceeded"
        assert reply.headers["x-should-retry"] == "false"
        assert inference.cancelled.is_set()
        stream = await client.post("/ask", content=QUESTION, headers={**TEXT, "Accept": "text/event-stream"})
        assert events(stream.text)[-1][1]["error"]["code"] == "deadline_exceeded"


def events(text: str) -> list[tuple[str, Any]]:
    """Server-sent events as (name, data), without comments."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields.get("event", ""), json.loads(fields["data"])))
    return found


async def test_event_stream(client: Client) -> None:
    headers = {**TEXT, "Accept": "text/event-stream"}
    reply = await client.post("/ask", content=QUESTION, headers=headers)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert "x-request-id" in reply.headers
    found = events(reply.text)
    names = [name for name, _ in found]
    assert names[0] == "stage"
    assert names[-1] == "done"
    assert set(names) == {"stage", "delta", "done"}
    assert "".join(data["text"] for name, data in found if name == "delta").startswith("Chris Pressey")
    assert "Chris Pressey" in found[-1][1]["answer"]
    assert all(data["stage"] for name, data in found if name == "stage")


async def test_errors_in_a_stream_and_outside(client: Client, inference: ScriptedInference) -> None:
    inference.error = ModelUnavailableError("the model host died; try again", retry_after=2)
    reply = await client.post("/ask", content=QUESTION, headers=TEXT)
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
    stream = await client.post("/ask", content=QUESTION, headers={**TEXT, "Accept": "text/event-stream"})
    name, data = events(stream.text)[-1]
    assert name == "error"
    assert data["error"]["code"] == "model_unavailable"
    assert data["error"]["request_id"] == stream.headers["x-request-id"]


async def test_unexpected_errors_tell_nothing(client: Client, inference: ScriptedInference) -> None:
    inference.error = RuntimeError("/secret/path")
    plain = await client.post("/ask", content=QUESTION, headers=TEXT)
    stream = await client.post("/ask", content=QUESTION, headers={**TEXT, "Accept": "text/event-stream"})
    assert plain.status_code == 500
    assert plain.headers["x-should-retry"] == "false"
    assert events(stream.text)[-1][1]["error"]["code"] == "internal"
    assert "secret" not in plain.text + stream.text


def test_reply_kinds() -> None:
    assert reply_kind("*/*", "application/json; charset=utf-8") == "application/json"
    assert reply_kind("", "text/plain") == "text/plain"
    assert reply_kind("application/json", "text/plain") == "application/json"
    assert reply_kind("text/plain", "application/json") == "text/plain"
    assert reply_kind("text/event-stream, application/json", "application/json") == "text/event-stream"


def test_citations_as_text() -> None:
    result = AskResult(
        id="1",
        answer="Yes [1][2].",
        citations=[
            Citation(1, "Befunge", "", "http://w/Befunge", 1),
            Citation(2, "INTERCAL", "History", "http://w/I#H", 1),
        ],
        search_terms=[],
        skipped=[],
        budget=Budget(1, 1, 1, 1, 1, 1),
        timings={},
        model="m",
    )
    assert as_text(result.answer, result.citations) == (
        "Yes [1][2].\n\n[1] Befunge: http://w/Befunge\n[2] INTERCAL, History: http://w/I#H\n"
    )


@pytest.mark.parametrize("title", ["Befunge", "befunge", "Befunge_"])
async def test_a_page_of_the_wiki(client: Client, title: str) -> None:
    page = (await client.get("/wiki/page", params={"title": title})).json()
    assert (page["title"], page["url"]) == ("Befunge", "https://esolangs.org/wiki/Befunge")
    assert page["sections"][0]["heading"] == "" and "Chris Pressey" in page["sections"][0]["text"]


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [("?title=Nowhere", 404, None), ("", 400, "title"), ("?title=", 400, "title")],
)
async def test_a_page_that_is_not_there(client: Client, query: str, status: int, param: str | None) -> None:
    reply = await client.get(f"/wiki/page{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)
