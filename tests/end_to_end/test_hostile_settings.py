"""Settings of a generation that no honest client sends, in every dialect: 400, and the message names the field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server import Server

HI = [{"role": "user", "content": "hi"}]
# Path, an ordinary body, the object within it that has the settings, and names that differ from OpenAI's.
DIALECTS: dict[str, tuple[str, dict[str, Any], str, dict[str, str]]] = {
    "chat": ("/v1/chat/completions", {"messages": HI, "max_tokens": 4}, "", {}),
    "completions": ("/v1/completions", {"prompt": "hi", "max_tokens": 4}, "", {}),
    "responses": ("/v1/responses", {"input": "hi"}, "", {"max_tokens": "max_output_tokens"}),
    "anthropic": (
        "/v1/messages",
        {"model": "default", "messages": HI, "max_tokens": 4},
        "",
        {"stop": "stop_sequences"},
    ),
    "ollama-chat": (
        "/api/chat",
        {"model": "default", "stream": False, "messages": HI},
        "options",
        {"max_tokens": "num_predict"},
    ),
    "ollama-generate": (
        "/api/generate",
        {"model": "default", "stream": False, "prompt": "hi"},
        "options",
        {"max_tokens": "num_predict"},
    ),
}
# JSON texts, some of which no JSON parser takes.
HOSTILE: dict[str, list[str]] = {
    "temperature": ["NaN", "Infinity", "-1", "1e308", "1e999", '"0.5"', "true", "[]"],
    "top_p": ["NaN", "-0.1", "1.1", '"x"', "{}"],
    "top_k": ["-2", "1000000000000", "1.5", str(2**70)],
    "min_p": ["-1", "2", "-Infinity"],
    "presence_penalty": ["3", "-Infinity"],
    "frequency_penalty": ["-3", "NaN"],
    "repeat_penalty": ["0", "-1", "1e9"],
    "seed": ["-2", str(2**32 - 1), str(2**63), str(2**64), str(2**70), str(-(2**70)), "1.5", '"1"'],
    "stop": [
        json.dumps([f"s{number}" for number in range(10_000)]),
        '[""]',
        json.dumps(["x" * 10_000]),
        "[null]",
        "5",
        '["\\ud800"]',
    ],
    "logit_bias": ['{"99999999": 5}', '{"1": NaN}', "[1]", '{"-1": 1e9}'],
    "n": ["0", "1000000", "-1"],
    "max_tokens": ["-3", "1000000000000", "1.5", "1e999"],
    "top_logprobs": ["1000000", "-1"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("hostile") / "data", tiny_model)
    yield made
    made.stop()


def send(server: Server, dialect: str, settings: dict[str, str]) -> tuple[int, str]:
    """Status and body of the reply; the settings are JSON texts, put in as they are."""
    path, body, within, names = DIALECTS[dialect]
    given = {names.get(name, name): f"@{number}@" for number, name in enumerate(settings)}
    text = json.dumps({**body, within: given} if within else body | given)
    for number, value in enumerate(settings.values()):
        text = text.replace(f'"@{number}@"', value)
    reply = server.client.post(path, content=text.encode(), headers={"content-type": "application/json"})
    return reply.status_code, reply.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_hostile_settings_are_refused_by_name(server: Server, dialect: str) -> None:
    names = DIALECTS[dialect][3]
    for field, values in HOSTILE.items():
        for value in values:
            status, text = send(server, dialect, {field: value})
            assert (status, names.get(field, field) in text) == (400, True), (
                field,
                value[:50],
                status,
                text[:300],
            )
            assert "Traceback" not in text
    assert server.health()["status"] == "ok"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_settings_that_mean_something_are_obeyed(server: Server, dialect: str) -> None:
    for settings in (
        {"top_k": "1000000"},
        {"top_k": "0"},
        {"temperature": "0", "top_p": "0"},
        {"temperature": "5", "top_p": "1"},
        {"stop": '["a\\u0000b", "\\ud83d\\ude00"]'},
    ):
        status, text = send(server, dialect, {**settings, "max_tokens": "4"})
        assert status == 200, (settings, text[:300])


SHAPES = [
    (
        "chat",
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}},
        "response_format",
    ),
    ("chat", {"grammar": 'root ::= root "a"'}, "grammar"),
    ("completions", {"grammar": 'root ::= "a"{3,1}'}, "grammar"),
    (
        "responses",
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"not": {}}}}},
        "text.format",
    ),
    ("ollama-chat", {"format": {"properties": {"a": {"type": "text"}}}}, "format"),
    ("ollama-generate", {"format": {"type": "string", "pattern": "(?=a)"}}, "format"),
]


@pytest.mark.parametrize(("dialect", "fields", "param"), SHAPES)
def test_grammars_and_schemas_are_refused_by_the_name_of_their_field(
    server: Server, dialect: str, fields: dict[str, Any], param: str
) -> None:
    path, body, _, _ = DIALECTS[dialect]
    reply = server.client.post(path, json=body | fields)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    message = error if isinstance(error, str) else error["message"]
    assert message.startswith(f"`{param}`: the "), message
    assert isinstance(error, str) or (error["param"], error["code"]) == (param, "bad_grammar")
