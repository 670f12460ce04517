"""A pytest plugin with which llama-server's own tests start hearth and use its routes."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from gateway.cli.common.files import opened_database
from gateway.store.keys import _digest, create_key
from tests.end_to_end.server import Server

sys.modules["wget"] = types.ModuleType("wget")  # downloads models

import utils  # type: ignore[import-not-found]  # noqa: E402  # of the tests

_ROUTES = {
    "/health": "/healthz",
    "/models": "/v1/models",
    "/chat/completions": "/v1/chat/completions",
    "/chat/completions/input_tokens": "/v1/chat/completions/input_tokens",
    "/completions": "/v1/completions",
    "/completion": "/v1/completions",
    "/embeddings": "/v1/embeddings",
}
_OWN_FORM = ("/completion", "/completions")  # replies are not OpenAI's
_DEFAULT_PORT = 8080
_COUNTS = {"n_prompt", "n_tokens"}
_WORDS = re.compile(r"[\w' |()+.]*|\[ -3000 ]")


def _start(self: Any, timeout_seconds: float = 60) -> None:
    settings = {
        "MODEL__CONTEXT": max(512, self.n_ctx or 0),  # the least that hearth takes
        "MODEL__PARALLEL": self.n_slots,
        "SERVER__PAGE": str(not self.no_ui).lower(),
    }
    if self.server_embeddings:
        settings |= {"EMBEDDING__MODEL": Path("embedding.gguf").absolute()}
    if self.server_reranking:
        settings |= {"RERANK__MODEL": Path("rerank.gguf").absolute()}
    folder = Path(tempfile.mkdtemp(dir=".")).absolute()
    if self.api_key:
        _make_key(folder, self.api_key)
    environment = {f"HEARTH_{name}": str(value) for name, value in settings.items() if value}
    port = self.server_port if self.server_port != _DEFAULT_PORT else 0  # started before: the same again
    self.process = Server(folder, os.environ["CHAT_MODEL"], "--port", str(port), env=environment)
    self.server_port = int(self.process.url.rpartition(":")[2])
    utils.server_instances.add(self)


def _make_key(folder: Path, token: str) -> None:
    with opened_database(folder / "hearth.db") as database:
        key, _ = database.write_sync(lambda connection: create_key(connection, "tests", "admin"))
        change = "UPDATE keys SET hash = ? WHERE id = ?"
        database.write_sync(lambda connection: connection.execute(change, (_digest(token), key.id)).get)


def _stop(self: Any) -> None:
    utils.server_instances.discard(self)
    if self.process is not None:
        self.process.stop()
        self.process = None


def _body(self: Any, path: str, data: Any) -> Any:
    """llama-server takes defaults from its command line; hearth's clients send them."""
    if not isinstance(data, dict) or "completion" not in path:
        return data
    given = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.n_predict}
    if {"n_predict", "max_tokens", "max_completion_tokens"} & data.keys() or not self.n_predict:
        del given["max_tokens"]
    body = given | data
    if isinstance(prompt := body.get("prompt"), list):
        body["prompt"] = [_plain(each) for each in prompt]
    elif prompt is not None:
        body["prompt"] = _plain(prompt)
    if path in _OWN_FORM:
        body.pop("return_tokens", None)
        if "n_probs" in body:
            body["logprobs"] = min(5, body.pop("n_probs"))
    return body


def _plain(prompt: Any) -> Any:
    return prompt["prompt_string"] if isinstance(prompt, dict) and len(prompt) == 1 else prompt


def _named(self: Any, reply: Any) -> Any:
    """hearth names the model that answers and has no fingerprint of a build."""
    if isinstance(reply, dict) and "choices" in reply:
        return reply | {"model": self.model_alias, "system_fingerprint": "b0"}
    return reply


def _completion(choice: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    counts = {"prompt_n": usage["prompt_tokens"] - cached, "cache_n": cached}
    return {
        "content": choice["text"],
        "stop": True,
        "stop_type": "limit" if choice["finish_reason"] == "length" else "eos",
        "has_new_line": "\n" in choice["text"],
        "truncated": False,
        "tokens": [],
        "timings": counts | {"predicted_n": usage["completion_tokens"]},
    }


def _make_request(self: Any, method: str, path: str, data: Any = None, **more: Any) -> Any:
    reply = _request(self, method, _ROUTES.get(path, path), _body(self, path, data), **more)
    reply.body = _named(self, reply.body)
    if reply.status_code == 200 and path in _OWN_FORM:
        found = [_completion(choice, reply.body["usage"]) for choice in reply.body["choices"]]
        reply.body = found if len(found) > 1 else found[0]
    return reply


def _make_stream_request(self: Any, method: str, path: str, data: Any = None, **more: Any) -> Iterator[Any]:
    body = _body(self, path, data)
    if path in _OWN_FORM:
        body = body | {"stream_options": {"include_usage": True}}
    last: dict[str, Any] = {}
    for chunk in _stream(self, method, _ROUTES.get(path, path), body, **more):
        if path not in _OWN_FORM:
            yield _named(self, chunk)
        elif chunk["choices"] and not chunk["choices"][0]["finish_reason"]:
            yield {"content": chunk["choices"][0]["text"], "stop": False, "tokens": [0]}
        elif chunk["choices"]:
            last = chunk["choices"][0]
        else:
            yield _completion(last, chunk["usage"])


def _match_regex(regex: str, text: str) -> bool:
    """Words are those of the tests' own model: any text will do."""
    return bool(text) if _WORDS.fullmatch(regex) and "\\" not in regex else _match(regex, text)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Another model says other words, and its vocabulary counts other numbers of tokens."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        for name in _COUNTS & parameters.keys():
            parameters[name] = ANY
        if "n_prompt" in parameters:
            parameters["re_content"] = ""


_request, _stream, _match = (
    utils.ServerProcess.make_request,
    utils.ServerProcess.make_stream_request,
    utils.match_regex,
)
utils.ServerProcess.start, utils.ServerProcess.stop = _start, _stop
utils.ServerProcess.make_request = _make_request
utils.ServerProcess.make_stream_request = _make_stream_request
utils.ServerPreset.load_all = staticmethod(lambda: None)
utils.match_regex = _match_regex
