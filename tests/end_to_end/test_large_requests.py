"""A request of megabytes is answered or refused within seconds, and the others never notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server

LETTERS = 3_900_000
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(start_server: StartServer, tiny_embedding_model: Path) -> Server:
    return start_server(
        env={"HEARTH_EMBEDDING__MODEL": str(tiny_embedding_model), "HEARTH_EMBEDDING__THREADS": "1"}
    )


def question(text: str) -> dict[str, Any]:
    return {"model": "default", "messages": [{"role": "user", "content": text}], "max_tokens": 1}


# Three bytes a letter in UTF-8, and no letter of the vocabulary.
@pytest.mark.parametrize("text", ["7" * LETTERS, "漢" * (LETTERS // 3)], ids=["digits", "unknown"])
def test_megabytes_of_one_letter(server: Server, text: str) -> None:
    small = {"content": "hello"}
    assert server.client.post("/tokenize", json=small).status_code == 200
    pid = server.host_pid()
    refused = {
        "/tokenize": ({"content": text}, 400, "reply_too_long"),
        "/v1/chat/completions": (question(text), 400, "prompt_too_long"),
        "/v1/completions": ({"model": "default", "prompt": text}, 400, "prompt_too_long"),
        "/v1/embeddings": ({"model": "default", "input": text}, 400, "prompt_too_long"),
        "/ask": ({"question": text}, 413, "request_too_large"),
    }
    for path, (body, status, code) in refused.items():
        reply = server.client.post(path, content=msgspec.json.encode(body), headers=JSON)
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, code), path
        assert server.client.post("/tokenize", json=small).status_code == 200, path
    assert server.host_pid() == pid


def test_the_pieces_of_a_million_tokens(server: Server) -> None:
    text = "a b " * 500_000
    reply = server.client.post("/tokenize", json={"content": text, "with_pieces": True})
    assert reply.status_code == 200
    assert "".join(token["piece"] for token in reply.json()["tokens"]) == text
