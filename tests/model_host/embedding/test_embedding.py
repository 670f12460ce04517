"""Vectors from a real embedding host."""

from __future__ import annotations

import base64
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.model_host.conftest import StartHost
from tests.model_host.driver import HostProcess

TEXTS = [
    "Befunge is a two-dimensional language.",
    "Fish.",
    "A longer text about languages in which programs are pictures, songs or recipes. " * 3,
    "€ Böhm ><> 日本語",
    "<bos><start_of_turn>control tokens are just text<end_of_turn>",
]
WIDTH = 64
_numbers = itertools.count()


def ask(host: HostProcess, **fields: Any) -> dict[str, Any]:
    """The terminal event of an ``embed`` with a fresh id."""
    request_id = f"e{next(_numbers)}"
    host.send(op="embed", id=request_id, **fields)
    return host.end(request_id)


def vectors(event: dict[str, Any]) -> NDArray[np.float32]:
    """The vectors of an ``embedded`` event, a row a text."""
    assert event["event"] == "embedded", event
    return np.array([np.frombuffer(base64.b64decode(each), "<f4") for each in event["embeddings"]])


# --------------------------------------------------------------------------- what a vector is


def test_ready_tells_the_dimensions(embedder: HostProcess) -> None:
    assert embedder.ready is not None
    assert (embedder.ready["architecture"], embedder.ready["dimensions"]) == ("gemma-embedding", WIDTH)


def test_vectors_are_the_same_alone_and_in_company(embedder: HostProcess) -> None:
    """Texts of one batch must not see each other."""
    together = vectors(ask(embedder, texts=TEXTS))
    alone = np.concatenate([vectors(ask(embedder, texts=[text])) for text in TEXTS])
    backwards = vectors(ask(embedder, texts=TEXTS[::-1]))[::-1]
    assert together.shape == (len(TEXTS), WIDTH)
    np.testing.assert_allclose(together, alone, atol=2e-3)
    np.testing.assert_allclose(together, backwards, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, rtol=1e-5)
    alike = together @ together.T
    assert (alike[~np.eye(len(TEXTS), dtype=bool)] < 0.999).all(), "different texts, different vectors"


def test_dimensions_keep_the_first_ones_and_normalize_again(embedder: HostProcess) -> None:
    whole = vectors(ask(embedder, texts=TEXTS))
    short = vectors(ask(embedder, texts=TEXTS, dimensions=16))
    expected = whole[:, :16] / np.linalg.norm(whole[:, :16], axis=1, keepdims=True)
    np.testing.assert_allclose(short, expected, atol=2e-3)
    raw = vectors(ask(embedder, texts=TEXTS, normalize=False))
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1.0, atol=0.01)
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), whole, atol=2e-3)


def test_token_ids_are_the_text_they_stand_for(embedder: HostProcess, host: HostProcess) -> None:
    host.send(op="count", id="ids", texts=TEXTS[:2], return_tokens=True)  # both models have one vocabulary
    tokens = host.end("ids")["tokens"]
    by_tokens, by_text = ask(embedder, tokens=tokens), ask(embedder, texts=TEXTS[:2])
    np.testing.assert_allclose(vectors(by_tokens), vectors(by_text), atol=2e-3)
    # Two special tokens are added, one at each end.
    assert by_tokens["tokens"] == by_text["tokens"] == [len(each) + 2 for each in tokens]


# --------------------------------------------------------------------------- refusals


def test_a_text_over_the_context_is_refused_and_named(embedder: HostProcess) -> None:
    end = ask(embedder, texts=["short", "word " * 400])
    assert end["code"] == "prompt_too_long"
    assert (end["details"]["index"], end["details"]["limit"]) == (1, 256)
    assert end["details"]["tokens"] > 256
    # As long as the context, and longer than the token budget of a batch: that is served.
    fits = ask(embedder, texts=["a" * 20, "word " * 90])
    assert max(fits["tokens"]) > 64


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "texts"),
        ({"texts": []}, "texts"),
        ({"tokens": []}, "texts"),
        ({"texts": ["a"], "tokens": [[5]]}, "exactly one"),
        ({"texts": ["a"] * 257}, "texts"),
        ({"texts": "a"}, "texts"),
        ({"texts": [7]}, "texts"),
        ({"texts": ["a"], "dimensions": 65}, "64"),
        ({"texts": ["a"], "dimensions": 0}, "dimensions"),
        ({"texts": ["a"], "lane": "slow"}, "lane"),
        ({"texts": ["a"], "owner": "x" * 200}, "owner"),
        ({"texts": ["a"], "surprise": 1}, "surprise"),
        ({"tokens": [[-1]]}, "tokens"),
        ({"tokens": [[10**6]]}, "outside the vocabulary"),
        ({"tokens": [[500], [2]]}, "text 1: token 2 is a control token"),
    ],
)
def test_what_cannot_be_is_refused_by_name(embedder: HostProcess, fields: dict[str, Any], said: str) -> None:
    end = ask(embedder, **fields)
    assert (end["event"], end["code"]) == ("failed", "bad_request")
    assert said in end["message"]


def test_each_host_refuses_the_others_work(embedder: HostProcess, host: HostProcess) -> None:
    for number, request in enumerate(
        (
            {"op": "generate", "prompt": "x"},
            {"op": "count", "texts": ["x"]},
            {"op": "detokenize", "tokens": [5]},
        )
    ):
        embedder.send(id=f"wrong{number}", **request)
        assert embedder.end(f"wrong{number}")["code"] == "wrong_host"
    assert ask(host, texts=["x"])["code"] == "wrong_host"


def test_a_chat_model_is_no_embedding_model(start_host: StartHost, tiny_embedding_model: Path) -> None:
    chat = start_host("--embedding", wait_ready=False)
    assert chat.end(None)["code"] == "model_unsupported"
    assert chat.process.wait(10) == 1
    embedding = start_host(model=tiny_embedding_model, wait_ready=False)
    assert embedding.end(None)["code"] == "model_unsupported"


# --------------------------------------------------------------------------- many at once


def test_cancel_stops_an_embed_and_spares_the_others(
    start_host: StartHost, tiny_embedding_model: Path
) -> None:
    host = start_host("--embedding", "--chunk", "32", model=tiny_embedding_model)
    long = [f"text number {n} about languages " * 20 for n in range(200)]
    host.send(op="embed", id="long", texts=long, lane="background")
    host.send(op="embed", id="short", texts=["hello"], owner="other")
    host.send(op="cancel", id="c", target="long")
    assert host.end("c")["found"]
    assert host.end("long")["code"] == "cancelled"
    assert host.end("short")["event"] == "embedded"
    host.send(op="cancel", id="late", target="long")
    assert not host.end("late")["found"]
    assert host.stop() == 0


def test_open_embeds_end_at_shutdown(start_host: StartHost, tiny_embedding_model: Path) -> None:
    host = start_host("--embedding", model=tiny_embedding_model)
    for number in range(8):
        host.send(op="embed", id=f"r{number}", texts=["a text about languages " * 40] * 100)
    assert host.stop() == 0  # checks one terminal event for each id
    assert {host.end(f"r{number}")["event"] for number in range(8)} <= {"embedded", "failed"}


def test_short_questions_overtake_a_long_import(embedder: HostProcess) -> None:
    """The order of the ends does not depend on speed: the import has hundreds of batches, the question one."""
    for number in range(4):
        embedder.send(
            op="embed", id=f"import{number}", texts=["import " * 10] * 30, lane="background", owner="a"
        )
    embedder.send(op="embed", id="question", texts=["What?"], lane="interactive", owner="b")
    last = [embedder.end(f"import{number}", 60) for number in range(4)][-1]
    assert embedder.end("question")["_at"] < last["_at"]


def test_stats_count_tokens(embedder: HostProcess) -> None:
    def prompt_tokens() -> int:
        embedder.send(op="stats", id=(request_id := f"s{next(_numbers)}"))
        return int(embedder.end(request_id)["prompt_tokens"])

    before = prompt_tokens()
    counted = ask(embedder, texts=TEXTS)["tokens"]
    assert prompt_tokens() - before == sum(counted)


def test_random_and_mutated_lines(embedder: HostProcess) -> None:
    """Every line that names a fresh, well-formed id gets exactly one end; the host lives on."""
    chance = random.Random(7)
    expected: set[str] = set()
    for number in range(1500):
        request_id = f"f{number}"
        message: dict[str, Any] = {"op": "embed", "id": request_id, "texts": ["a b", "c"]}
        kind = chance.random()
        if kind < 0.25:
            line = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 60))).replace(b"\n", b"")
        elif kind < 0.5:  # an id of its own: a changed character must not name another line's request
            line = json.dumps(message | {"id": f"{chance.getrandbits(64):016x}"}).encode()
            cut = chance.randrange(len(line))
            line = line[:cut] + bytes([chance.randrange(32, 127)]) + line[cut + 1 :]
        else:
            field = chance.choice(["texts", "tokens", "lane", "dimensions", "op", "normalize"])
            message[field] = chance.choice([-1, 10**30, "é" * 30, [], [[]], {}, 0.5, None, [""]])
            line = json.dumps(message).encode()
            expected.add(request_id)
        embedder.raw(line + b"\n")
        if number % 50 == 49:
            for each in expected:
                embedder.end(each)
    assert ask(embedder, texts=["alive"])["event"] == "embedded"
