"""POST /v1/completions with a real host: log-probabilities of prompts, tokens as prompts, and fill-in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.end_to_end.server import Server

TEXT = (
    "A grid is a list of rows. Each row has as many cells as the grid has columns, and a cell holds one sign. "
    * 3
)


@pytest.fixture(scope="module", params=["tiny_model", "demo_model"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    model = request.getfixturevalue(request.param)
    server = Server(tmp_path_factory.mktemp("completions") / "data", model)
    yield server
    server.stop()


def complete(server: Server, prompt: Any, **fields: Any) -> dict[str, Any]:
    body = {"prompt": prompt, "temperature": 0, "logprobs": 1, **fields}
    reply = server.client.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    made: dict[str, Any] = reply.json()
    return made


def test_a_prompt_has_the_log_probabilities_of_its_generation(server: Server) -> None:
    """Also where its beginning is cached, and where its steps are shared with other prompts."""
    tokens = server.client.post("/tokenize", json={"content": TEXT}).json()["tokens"]
    places = range(1, len(tokens), 7)
    ones = [complete(server, tokens[:at], max_tokens=1, ignore_eos=True)["choices"][0] for at in places]
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(complete, server, tokens, max_tokens=0, echo=True) for _ in range(3)]
        others = [pool.submit(complete, server, f"{n} {TEXT}", max_tokens=30) for n in range(3)]
        assert all(other.result()["choices"] for other in others)
    for reply in (each.result() for each in asked):
        assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
        assert reply["usage"]["completion_tokens"] == 0
        [choice] = reply["choices"]
        assert (choice["text"], choice["finish_reason"]) == (TEXT, "length")
        logprobs = choice["logprobs"]
        assert len(logprobs["tokens"]) == len(tokens) == len(logprobs["top_logprobs"])
        assert None not in logprobs["token_logprobs"][1:]
        best = [max(logprobs["top_logprobs"][at].values()) for at in places]
        wanted = [one["logprobs"]["token_logprobs"][0] for one in ones]
        # Prompts of other lengths are rounded otherwise; on a processor with AMX single values differ by 0.26.
        assert best == pytest.approx(wanted, abs=0.5)
        assert median(abs(a - b) for a, b in zip(best, wanted, strict=True)) < 0.1
        offsets = logprobs["text_offset"]
        assert offsets == sorted(offsets)
        assert all(TEXT[offsets[at] :].startswith(logprobs["tokens"][at]) for at in places)


def test_prompt_and_reply_together(server: Server) -> None:
    """As lm-eval asks: the last token is the reply's."""
    [whole] = complete(server, "Who made it?", max_tokens=1, echo=True, ignore_eos=True)["choices"]
    [alone] = complete(server, "Who made it?", max_tokens=1, ignore_eos=True)["choices"]
    assert whole["text"] == "Who made it?" + alone["text"]
    assert whole["logprobs"]["tokens"][-1:] == alone["logprobs"]["tokens"]
    assert whole["logprobs"]["token_logprobs"][-1:] == pytest.approx(
        alone["logprobs"]["token_logprobs"], abs=0.2
    )
    body = {"prompt": "Who made it?", "temperature": 0, "logprobs": 1, "max_tokens": 1, "echo": True}
    reply = server.client.post("/v1/completions", json={**body, "ignore_eos": True, "stream": True}).text
    assert reply.count('"text_offset":[0,') == 1
    sent = ""
    for line in reply.splitlines():
        if not line.startswith("data: {") or not (choices := json.loads(line[6:])["choices"]):
            continue
        [choice] = choices
        if known := choice["logprobs"]:
            assert choice["text"].startswith(known["tokens"][0].strip()), (
                "probabilities stand with their text"
            )
            assert known["text_offset"][0] in (len(sent), len(sent) - 1)
        sent += choice["text"]
    assert sent == whole["text"]


def test_what_goes_between(tmp_path: Path) -> None:
    """The control tokens of the random model are numbered in the order of ``models/random_gemma.py``."""
    before, after, between = 6, 7, 8
    model = tmp_path / "code.gguf"
    subprocess.run([sys.executable, "models/random_gemma.py", model, "--chat", "code"], check=True)
    server = Server(tmp_path / "data", model)
    try:
        filled = complete(server, "a = ", suffix="\nb", ignore_eos=True)
        spelled = complete(server, [before, "a = ", after, "\nb", between], ignore_eos=True)
        assert filled["choices"] == spelled["choices"]
        assert filled["usage"]["prompt_tokens"] == spelled["usage"]["prompt_tokens"]
        plain = complete(server, "a = \nb", ignore_eos=True)
        assert filled["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + 3
        ollama = {"model": "default", "prompt": "a = ", "suffix": "\nb", "stream": False}
        reply = server.client.post("/api/generate", json=ollama).json()
        assert reply["prompt_eval_count"] == filled["usage"]["prompt_tokens"]
    finally:
        server.stop()


def test_suffix_needs_fill_in_tokens(server: Server) -> None:
    refused = server.client.post("/v1/completions", json={"prompt": "a", "suffix": "b"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "suffix")
    assert "fill-in tokens" in refused.json()["error"]["message"]


def test_special_tokens_around_a_text(server: Server) -> None:
    """A prompt of these tokens is the same as the text; BOS comes once."""
    tokens = server.client.post("/tokenize", json={"content": "Who?", "add_special": True}).json()["tokens"]
    plain = server.client.post("/tokenize", json={"content": "Who?"}).json()["tokens"]
    assert tokens[len(tokens) - len(plain) :] == plain
    replies = [
        complete(server, prompt, ignore_eos=True) for prompt in (tokens, "Who?", [*tokens[:-2], *plain[-2:]])
    ]
    assert len({reply["choices"][0]["text"] for reply in replies}) == 1
    assert len({reply["usage"]["prompt_tokens"] for reply in replies}) == 1


def test_props_and_slots(server: Server) -> None:
    shown = server.client.get("/props").json()
    assert shown["model_path"].endswith(".gguf") and "/" not in shown["model_path"]
    assert "messages" in shown["chat_template"]
    slots = server.client.get("/slots").json()
    assert [slot["id"] for slot in slots] == list(range(shown["total_slots"]))
    assert {slot["n_ctx"] for slot in slots} == {shown["default_generation_settings"]["n_ctx"]}
    body = {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    with server.client.stream("POST", "/v1/completions", json=body) as reply:
        lines = reply.iter_lines()
        next(lines)
        busy = server.client.get("/slots").json()
    assert [slot["is_processing"] for slot in busy[:2]] == [True, False]


def test_moderations_are_refused_by_name(server: Server) -> None:
    refused = server.client.post("/v1/moderations", json={"input": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "moderations_not_supported")
    assert "/v1/moderations" in refused.json()["error"]["message"]
