"""Encoders of the BERT family: all-MiniLM-L6-v2 with real weights, and a cross encoder with random ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.model_host.conftest import StartHost
from tests.model_host.driver import HostProcess
from tests.model_host.embedding.test_embedding import ask, vectors

Matrix = NDArray[np.float32]


@pytest.fixture(scope="module")
def bert(minilm: Path) -> Iterator[HostProcess]:
    process = HostProcess(minilm, "--embedding")
    yield process
    assert process.stop() == 0


def tensors(path: Path) -> dict[str, Matrix]:
    return {t.name: t.data.astype(np.float32) for t in gguf.GGUFReader(path).tensors}


def last_layer(path: Path, words: list[str]) -> Matrix:
    """A row for each word, computed with numpy from the file's tensors."""
    fields, weights = gguf.GGUFReader(path).fields, tensors(path)
    vocabulary = fields["tokenizer.ggml.tokens"].contents()
    layers, count = (fields[f"bert.{name}"].contents() for name in ("block_count", "attention.head_count"))

    def norm(x: Matrix, name: str) -> Matrix:
        centered = x - x.mean(axis=1, keepdims=True)
        scaled = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-12)
        return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: Matrix, name: str) -> Matrix:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def heads(x: Matrix) -> Matrix:
        return x.reshape(len(x), count, -1).transpose(1, 0, 2)

    tokens = [vocabulary.index(word) for word in words]
    x = weights["token_embd.weight"][tokens] + weights["token_types.weight"][0]
    x = norm(x + weights["position_embd.weight"][: len(tokens)], "token_embd_norm")
    for layer in range(layers):
        q, k, v = (heads(linear(x, f"blk.{layer}.attn_{name}")) for name in "qkv")
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
        mixed = (scores / scores.sum(axis=-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(x), -1)
        x = norm(x + linear(mixed, f"blk.{layer}.attn_output"), f"blk.{layer}.attn_output_norm")
        up = linear(x, f"blk.{layer}.ffn_up")
        up = up * 0.5 * (1 + np.vectorize(math.erf)(up / math.sqrt(2)))
        x = norm(x + linear(up, f"blk.{layer}.ffn_down"), f"blk.{layer}.layer_output_norm")
    return x


def reference(path: Path, words: list[str]) -> Matrix:
    """The normalized mean of the last layer."""
    mean = last_layer(path, words).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def reference_score(path: Path, words: list[str]) -> float:
    """The head of a cross encoder on the first token of the last layer."""
    weights = tensors(path)
    pooled = np.tanh(weights["cls.weight"] @ last_layer(path, words)[0] + weights["cls.bias"])
    return float((weights["cls.output.weight"] @ pooled + weights["cls.output.bias"])[0])


def test_vectors_are_those_of_the_weights(bert: HostProcess, minilm: Path) -> None:
    assert bert.ready is not None
    ready = bert.ready
    assert (ready["architecture"], ready["dimensions"], ready["n_ctx"]) == ("bert", 384, 512)
    event = ask(bert, texts=["The cat's NAÏVE sleep, embeddings!"])
    parts = ["the", "cat", "'", "s", "naive", "sleep", ",", "em", "##bed", "##ding", "##s", "!"]
    words = [part[2:] if part.startswith("##") else f"\u2581{part}" for part in parts]
    assert event["tokens"] == [len(parts) + 2]
    expected = reference(minilm, ["[CLS]", *words, "[SEP]"])
    assert float(vectors(event)[0] @ expected) > 0.999


def test_pooling_is_that_of_the_file(start_host: StartHost, tiny_bert: Path) -> None:
    """The BGE models take the first token's vector, not the mean."""
    host = start_host("--embedding", model=tiny_bert)
    first = last_layer(tiny_bert, ["[CLS]", *letters("hello"), "[SEP]"])[0]
    found = vectors(ask(host, texts=["Hello"]))[0]
    assert float(found @ first / np.linalg.norm(first)) > 0.999


def test_meaning_decides(bert: HostProcess) -> None:
    texts = ["The cat sleeps on the sofa.", "A kitten naps on a couch.", "Shares fell in early trading."]
    alike = (found := vectors(ask(bert, texts=texts))) @ found.T
    assert alike[0, 1] > 0.6 > 0.2 > max(alike[0, 2], alike[1, 2])


def test_texts_do_not_see_each_other(bert: HostProcess) -> None:
    texts = [f"Text {number} about {topic}." for number, topic in enumerate(("cats", "grids", "a " * 200))]
    alone = np.concatenate([vectors(ask(bert, texts=[text])) for text in texts])
    np.testing.assert_allclose(vectors(ask(bert, texts=texts)), alone, atol=2e-3)


@pytest.mark.parametrize("text", ["word " * 511, "[CLS] [SEP] [MASK]", ""])
def test_ends_of_texts(bert: HostProcess, text: str) -> None:
    """Control tokens in a text are just text, and what is too long is refused."""
    event: dict[str, Any] = ask(bert, texts=[text])
    if len(text) > 100:
        assert (event["event"], event["code"]) == ("failed", "prompt_too_long")
    else:
        assert event["event"] == "embedded"
        assert event["tokens"] == [2 if not text else 12]


# --------------------------------------------------------------------------- rerankers


@pytest.fixture(scope="module")
def reranker(tiny_reranker: Path) -> Iterator[HostProcess]:
    process = HostProcess(tiny_reranker, "--rerank")
    yield process
    assert process.stop() == 0


def letters(word: str) -> list[str]:
    """The tokens of a word in the random model's vocabulary, which has single signs only."""
    return [f"\u2581{word[0]}", *word[1:]]


def test_scores_are_those_of_the_weights(reranker: HostProcess, tiny_reranker: Path) -> None:
    assert reranker.ready is not None
    assert (reranker.ready["dimensions"], reranker.ready["n_ctx"]) == (1, 512)
    documents = ["hello", "a b"]
    event = ask(reranker, query="Who", texts=documents)
    expected = []
    for document in documents:
        words = [each for word in document.split() for each in letters(word)]
        pair = ["[CLS]", *letters("who"), "[SEP]", *words, "[SEP]"]
        expected.append(reference_score(tiny_reranker, pair))
    np.testing.assert_allclose(vectors(event)[:, 0], expected, atol=5e-3)
    assert abs(expected[0] - expected[1]) > 0.02
    assert event["tokens"] == [11, 8]


def test_pairs_of_xlm_roberta(start_host: StartHost, tiny_xlm_reranker: Path) -> None:
    """As bge-reranker was trained on them: an end, a separator, and an end behind the document."""
    host = start_host("--rerank", model=tiny_xlm_reranker)
    event = ask(host, query="who", texts=["</s>a b"])
    pieces = ["\u2581", *"who", "</s>", "</s>", "\u2581", *"</s>a", "\u2581", "b"]
    expected = reference_score(tiny_xlm_reranker, ["<s>", *pieces, "</s>"])
    assert event["tokens"] == [len(pieces) + 2]
    assert abs(float(vectors(event)[0, 0]) - expected) < 5e-3


def test_documents_do_not_see_each_other(reranker: HostProcess) -> None:
    texts = ["ab " * 70, "c", "[SEP] x", "a\0b", *(f"text {number}" for number in range(20))]
    together = vectors(ask(reranker, query="what?", texts=texts))
    alone = np.concatenate([vectors(ask(reranker, query="what?", texts=[text])) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-2)
    assert np.ptp(together) > 0.2, "scores of different texts differ by more"


def test_a_document_is_cut_on_request_only(reranker: HostProcess) -> None:
    long = "a " * 600
    refused = ask(reranker, query="q", texts=["b", long])
    assert (refused["code"], refused["details"]) == (
        "prompt_too_long",
        {"index": 1, "tokens": 604, "limit": 512},
    )
    cut = ask(reranker, query="q", texts=[long], max_tokens=3)
    assert cut["tokens"] == [7]
    np.testing.assert_allclose(vectors(cut), vectors(ask(reranker, query="q", texts=["a a a"])), atol=1e-4)


def test_each_kind_of_host_refuses_the_others_model_and_work(
    reranker: HostProcess, bert: HostProcess, minilm: Path, tiny_reranker: Path, start_host: StartHost
) -> None:
    assert ask(reranker, texts=["x"])["code"] == ask(bert, texts=["x"], query="q")["code"] == "wrong_host"
    assert ask(reranker, tokens=[[7]], query="q")["code"] == "bad_request"
    for path, flag, said in (
        (minilm, "--rerank", "no reranker"),
        (tiny_reranker, "--embedding", "rerank.model"),
    ):
        wrong = start_host(flag, model=path, wait_ready=False)
        end = wrong.end(None)
        assert (end["code"], said in end["message"]) == ("model_unsupported", True)
        assert wrong.process.wait(10) == 1


def test_a_reranker_that_does_not_name_its_pooling(
    reranker: HostProcess, tiny_reranker: Path, tmp_path: Path, start_host: StartHost
) -> None:
    """As the converters of 2024 wrote them."""
    old = tmp_path / "old.gguf"
    old.write_bytes(tiny_reranker.read_bytes().replace(b"bert.pooling_type", b"bert.pooling_typo"))
    host = start_host("--rerank", model=old)
    found, expected = (vectors(ask(each, query="q", texts=["a"])) for each in (host, reranker))
    np.testing.assert_allclose(found, expected, atol=1e-4)
