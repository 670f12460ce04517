"""Vectors through a real embedding host."""

from __future__ import annotations

import array
import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from gateway.base.errors import InvalidRequestError, ModelUnavailableError, PromptTooLongError
from gateway.config.settings import EmbeddingSettings, ModelSettings, Settings
from gateway.inference.embedder import HostEmbedder, host_settings
from gateway.inference.embedding import EmbedCall, Embedder
from gateway.inference.host import HostInference
from gateway.inference.process.launch import host_command
from gateway.models.catalog import ResolvedModel, TaskPrompts
from tests.gateway.inference.helpers import call, own_children
from tests.waiting import until

PROMPTS = TaskPrompts(
    query="task: search | query: {text}", document="title: {title} | text: {text}", untitled="none"
)


@pytest.fixture
def model(tiny_embedding_model: Path) -> ResolvedModel:
    return ResolvedModel(
        name="tiny",
        path=tiny_embedding_model,
        size_bytes=1,
        ram_bytes=1,
        context=256,
        kind="embedding",
        prompts=PROMPTS,
    )


@pytest.fixture
async def embedder(model: ResolvedModel) -> AsyncIterator[HostEmbedder]:
    made = HostEmbedder(lambda: model, ModelSettings(threads=1, memory_headroom_bytes=0))
    yield made
    await made.close()
    assert made.health().open_requests == 0
    assert not own_children()


def numbers(vector: bytes) -> list[float]:
    return array.array("f", vector).tolist()


def near(first: bytes, second: bytes) -> bool:
    # Texts of one batch differ by 0.003 from one alone; different texts by more than 0.2.
    return all(abs(a - b) < 1e-2 for a, b in zip(numbers(first), numbers(second), strict=True))


async def test_any_number_of_texts_in_order(embedder: HostEmbedder) -> None:
    as_embedder: Embedder = embedder
    assert as_embedder.name == "tiny"
    assert embedder.health().state == "stopped"
    texts = [f"text number {n}" for n in range(300)]  # more than one message takes
    made = await embedder.embed(EmbedCall(texts, lane="background"))
    assert [len(vector) for vector in made.vectors] == [4 * 64] * 300
    assert len(made.tokens) == 300
    [alone] = (await embedder.embed(EmbedCall([texts[280]]))).vectors
    assert near(alone, made.vectors[280])
    assert not near(alone, made.vectors[279])
    health = embedder.health()
    assert (health.state, health.model.dimensions if health.model else 0) == ("ready", 64)
    assert [each.name for each in embedder.loaded] == ["tiny"]
    assert (await embedder.embed(EmbedCall([]))).vectors == []


async def test_task_prompts_go_around_the_text(embedder: HostEmbedder) -> None:
    [query] = (await embedder.embed(EmbedCall(["{title} of {text}"], kind="query"))).vectors
    [plain] = (await embedder.embed(EmbedCall(["task: search | query: {title} of {text}"]))).vectors
    assert near(query, plain)
    documents = await embedder.embed(EmbedCall(["a text", "other"], kind="document", titles=["A {text}", ""]))
    whole = await embedder.embed(EmbedCall(["title: A {text} | text: a text", "title: none | text: other"]))
    assert all(near(one, other) for one, other in zip(documents.vectors, whole.vectors, strict=True))


async def test_dimensions_and_spaces(embedder: HostEmbedder, model: ResolvedModel) -> None:
    whole, short = (
        await embedder.embed(EmbedCall(["a"])),
        await embedder.embed(EmbedCall(["a"], dimensions=16)),
    )
    assert len(short.vectors[0]) == 4 * 16
    assert abs(sum(x * x for x in numbers(short.vectors[0])) - 1.0) < 1e-5
    assert whole.space != short.space
    with pytest.raises(InvalidRequestError, match="the model's vectors have 64") as refused:
        await embedder.embed(EmbedCall(["a"], dimensions=65))
    assert refused.value.param == "dimensions"
    other = HostEmbedder(
        lambda: msgspec.structs.replace(model, prompts=TaskPrompts()), ModelSettings(threads=1)
    )
    assert other.identity != embedder.identity
    assert (await other.embed(EmbedCall(["a"]))).space != whole.space
    await other.close()


async def test_a_long_text_is_named(embedder: HostEmbedder) -> None:
    texts = [*["short"] * 290, "word " * 400]
    with pytest.raises(PromptTooLongError, match="text 290 has") as refused:
        await embedder.embed(EmbedCall(texts))
    assert (refused.value.details["index"], refused.value.details["limit"]) == (290, 256)
    assert refused.value.param == "input"


async def test_token_ids_are_texts(embedder: HostEmbedder) -> None:
    made = await embedder.embed(EmbedCall([[500, 501], [502]]))
    assert made.tokens == [4, 3]
    with pytest.raises(InvalidRequestError, match="outside the vocabulary"):
        await embedder.embed(EmbedCall([[10**6]]))
    with pytest.raises(InvalidRequestError, match="control token"):
        await embedder.embed(EmbedCall([[2]]))


async def test_cancelling_the_caller_cancels_the_work(embedder: HostEmbedder) -> None:
    await embedder.warm()
    task = asyncio.create_task(embedder.embed(EmbedCall(["a long text about languages " * 8] * 2048)))
    await until(lambda: embedder.health().open_requests == 1)
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: embedder.health().open_requests == 0)
    assert len((await embedder.embed(EmbedCall(["still alive"]))).vectors) == 1
    assert embedder.health().restarts == 0


async def test_an_idle_host_goes_and_comes_back(model: ResolvedModel) -> None:
    embedder = HostEmbedder(
        lambda: model, ModelSettings(threads=1, memory_headroom_bytes=0, idle_seconds=0.05)
    )
    first = await embedder.embed(EmbedCall(["a"]))
    await until(lambda: embedder.health().state == "stopped")
    assert (await embedder.embed(EmbedCall(["a"], keep_alive=-1))).space == first.space
    await asyncio.sleep(0.1)
    assert embedder.health().state == "ready"
    await embedder.unload()
    assert embedder.health().state == "stopped"
    await embedder.close()


async def test_a_killed_host_is_replaced(embedder: HostEmbedder) -> None:
    await embedder.warm()
    pid = embedder.health().pid
    assert pid is not None
    task = asyncio.create_task(embedder.embed(EmbedCall(["a long text about languages " * 8] * 2048)))
    await until(lambda: embedder.health().open_requests == 1)
    await asyncio.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ModelUnavailableError):
        await task
    assert len((await embedder.embed(EmbedCall(["again"]))).vectors) == 1


async def test_models_side_by_side_must_fit_together(model: ResolvedModel, tiny_model: Path) -> None:
    """Mapped weights of a loaded model look like free memory to the kernel."""
    huge = ResolvedModel(name="huge", path=tiny_model, size_bytes=1, ram_bytes=2**60, context=256)
    embedder = HostEmbedder(lambda: model, ModelSettings(threads=1), beside=lambda: [huge])
    with pytest.raises(ModelUnavailableError, match=r"beside huge.*`embedding\.context`") as refused:
        await embedder.embed(EmbedCall(["a"]))
    assert refused.value.code == "out_of_memory"
    await embedder.close()


async def test_a_chat_model_is_refused(tiny_model: Path, model: ResolvedModel) -> None:
    wrong = HostEmbedder(
        lambda: msgspec.structs.replace(model, path=tiny_model),
        ModelSettings(threads=1, memory_headroom_bytes=0),
    )
    with pytest.raises(ModelUnavailableError, match="no embedding model") as refused:
        await wrong.embed(EmbedCall(["a"]))
    assert refused.value.code == "model_unsupported"
    await wrong.close()


async def test_both_hosts_side_by_side(embedder: HostEmbedder, tiny_model: Path) -> None:
    chat_model = ResolvedModel(name="chat", path=tiny_model, size_bytes=1, ram_bytes=1, context=512)
    chat = HostInference(chat_model, ModelSettings(threads=1), beside=lambda: embedder.loaded)
    async with aclosing(chat.generate(call(max_tokens=4))) as events:
        _, made = await asyncio.gather(anext(events), embedder.embed(EmbedCall(["a"])))
    assert len(made.vectors) == 1
    assert chat.health().pid != embedder.health().pid
    await chat.close()


def test_the_section_becomes_the_hosts_command_line(tmp_path: Path, model: ResolvedModel) -> None:
    settings = Settings(tmp_path, embedding=EmbeddingSettings(model="tiny", chunk=99, parallel=3, threads=2))
    command = host_command(model, host_settings(settings, settings.embedding))
    assert "--embedding" in command
    assert [
        command[command.index(flag) + 1] for flag in ("--context", "--chunk", "--parallel", "--threads")
    ] == [
        "256",
        "99",
        "3",
        "2",
    ]
