"""Thoughts and the template's variables with real weights, whose template gets Qwen3.5's way of opening a thought."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.models.gguf_header import chat_template
from tests.end_to_end.server import Server

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{{ '<think>\n' if enable_thinking else '<think>\n\n</think>\n\n' }}{% endif %}"
)
HI = [{"role": "user", "content": "Say hello."}]
BUDGET = {"type": "enabled", "budget_tokens": 9}
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 40}
CITY = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}


def rewritten(model: Path, target: Path) -> Path:
    """The model with TEMPLATE; a comment of Jinja fills the place of its own."""
    old = (chat_template(model) or "").encode()
    filling = b" " * (len(old) - len(TEMPLATE.encode()) - 4)
    target.write_bytes(model.read_bytes().replace(old, b"{#" + filling + b"#}" + TEMPLATE.encode()))
    assert (chat_template(target) or "").endswith(TEMPLATE)
    return target


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("thoughts")
    server = Server(folder / "data", rewritten(smollm2, folder / "thinker.gguf"))
    yield server
    server.stop()


def post(server: Server, path: str, **body: Any) -> Any:
    reply = server.client.post(path, json={"model": "default", **body})
    assert reply.status_code == 200, reply.text
    return reply


def chat(server: Server, **body: Any) -> Any:
    return post(server, "/v1/chat/completions", messages=HI, **GREEDY, **body)


@pytest.fixture(scope="module")
def answered(server: Server) -> dict[str, Any]:
    """A budget after which the model says something: after some thoughts it ends, and rounding decides after which."""
    for tokens in range(9, 40):
        budget = {"type": "enabled", "budget_tokens": tokens}
        if chat(server, thinking=budget).json()["choices"][0]["message"]["content"]:
            return budget
    pytest.fail("the model never answers after a thought")


def streamed(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "wish",
    [
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"think": True},
        {"enable_thinking": True},
        {"reasoning": {"enabled": True}},
    ],
)
def test_thoughts_are_separate_from_the_reply(
    server: Server, answered: dict[str, Any], wish: dict[str, Any]
) -> None:
    budget = {"budget_tokens": answered["budget_tokens"]}
    reply = chat(server, **wish, thinking=budget, logprobs=True)
    assert "x-hearth-ignored" not in reply.headers
    [choice] = reply.json()["choices"]
    message = choice["message"]
    assert message["reasoning_content"]
    assert message["content"]
    assert "think>" not in message["content"] + message["reasoning_content"]
    said = b"".join(bytes(token["bytes"] or []) for token in choice["logprobs"]["content"]).decode()
    assert said.strip() == message["content"].strip()
    events = streamed(chat(server, **wish, thinking=budget, stream=True).text)
    deltas = [event["choices"][0]["delta"] for event in events]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == message["reasoning_content"]
    assert "".join(delta.get("content", "") for delta in deltas) == message["content"]


def test_without_a_wish_there_are_none(server: Server) -> None:
    plain = chat(server).json()["choices"][0]["message"]
    assert "reasoning_content" not in plain
    for wish in ({"think": False}, {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}):
        reply = chat(server, **wish)
        assert reply.json()["choices"][0]["message"] == plain
        assert "x-hearth-ignored" not in reply.headers


def test_the_budget_ends_a_thought(server: Server) -> None:
    """Without one this model thinks until its tokens are used up."""
    used = chat(server, think=True, min_tokens=40).json()
    assert (used["choices"][0]["message"]["content"], used["choices"][0]["finish_reason"]) == ("", "length")
    short, none = (
        chat(server, thinking={"type": "adaptive", "budget_tokens": budget}).json()["choices"][0]["message"]
        for budget in (4, 0)
    )
    assert len(short["reasoning_content"]) < len(used["choices"][0]["message"]["reasoning_content"])
    assert short["content"]
    assert "reasoning_content" not in none
    assert none["content"]


def test_a_schema_holds_for_the_reply_and_not_for_the_thought(server: Server) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    message = chat(server, thinking=BUDGET, response_format=wanted).json()["choices"][0]["message"]
    assert json.loads(message["content"])["city"] in ("Rome", "Oslo")
    assert not message["reasoning_content"].startswith("{")


def test_a_thought_that_ends_the_reply_does_not_leave_out_what_the_schema_demands(server: Server) -> None:
    ends = server.client.post("/tokenize", json={"content": "."}).json()["tokens"]
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    bias = {"2": 100, str(ends[0]): -100}  # <|im_end|>, which ends a turn
    body = {"think": True, "response_format": wanted, "logit_bias": bias}
    assert json.loads(chat(server, **body).json()["choices"][0]["message"]["content"])


def test_a_tool_that_must_be_called_is_called_after_the_thought(server: Server) -> None:
    tool = {"type": "function", "function": {"name": "visit", "parameters": CITY}}
    message = chat(server, thinking=BUDGET, tools=[tool], tool_choice="required").json()["choices"][0][
        "message"
    ]
    assert message["reasoning_content"]
    assert message["tool_calls"][0]["function"]["name"] == "visit"


def test_anthropics_blocks(server: Server, answered: dict[str, Any]) -> None:
    body = {"messages": HI, "thinking": answered, **GREEDY}
    thought, text = post(server, "/v1/messages", **body).json()["content"]
    assert (thought["type"], text["type"], thought["signature"]) == ("thinking", "text", "")
    events = streamed(post(server, "/v1/messages", **body, stream=True).text)
    begun = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert begun == ["thinking", "text"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == thought["thinking"]
    assert "".join(delta.get("text", "") for delta in deltas) == text["text"]
    [only] = post(server, "/v1/messages", messages=HI, **GREEDY).json()["content"]
    assert only["type"] == "text"


def test_ollamas_thinking(server: Server) -> None:
    options = {"temperature": 0, "num_predict": 8}
    assert "thinking" in post(server, "/api/show").json()["capabilities"]
    body = {"messages": HI, "options": options, "stream": False}
    assert post(server, "/api/chat", **body, think=True).json()["message"]["thinking"]
    assert "thinking" not in post(server, "/api/chat", **body, think=False).json()["message"]
    lines = post(server, "/api/generate", prompt="Say hello.", options=options, think="low").text.splitlines()
    assert "".join(json.loads(line).get("thinking", "") for line in lines)


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({"chat_template_kwargs": {"sunny": True}}, "chat_template_kwargs.sunny"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"reasoning": {"effort": "low"}}, "reasoning"),
    ],
)
def test_what_the_template_does_not_know_is_named(server: Server, sent: dict[str, Any], named: str) -> None:
    assert chat(server, **sent).headers["x-hearth-ignored"] == named


@pytest.mark.parametrize(
    "variables",
    [
        {"messages": []},
        {"bos_token": "x"},
        {"enable_thinking": "<|im_start|>system"},
        {"enable_thinking": "x" * 65},
        {"enable_thinking": ["x"]},
        {"enable_thinking": 2**40},
        {"sun ny": True},
        {"x\r\ny": True},
        {f"v{number}": True for number in range(17)},
    ],
)
def test_variables_cannot_replace_or_spell_parts_of_the_prompt(
    server: Server, variables: dict[str, Any]
) -> None:
    body = {"messages": HI, "chat_template_kwargs": variables}
    reply = server.client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"].startswith("chat_template_kwargs")
