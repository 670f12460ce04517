"""The catalog's rows, and how a configured name becomes a file on this machine."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import ConfigurationError
from gateway.config.settings import EmbeddingSettings, ModelSettings, Settings, UpstreamSettings
from gateway.models.catalog import (
    Catalog,
    ModelRow,
    models_beside,
    resolve_embedding_model,
    resolve_model,
    split_repo_file,
    with_model_name,
)
from gateway.models.gguf_header import estimate_ram, kv_cache_bytes

GIB = 2**30


def settings(data_dir: Path, name: str, context: int = 0) -> Settings:
    return Settings(data_dir=data_dir, model=ModelSettings(name=name, context=context))


def header(**pairs: int | str | list[int]) -> bytes:
    """A GGUF header with these pairs; ``__`` in a name stands for the dot."""
    out = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs))
    for name, value in pairs.items():
        key = name.replace("__", ".").encode()
        out += struct.pack("<Q", len(key)) + key
        if isinstance(value, str):
            out += struct.pack("<IQ", 8, len(value)) + value.encode()
        elif isinstance(value, int):
            out += struct.pack("<II", 4, value)
        else:
            out += struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
    return out


GEMMA = {
    "general__architecture": "g",
    "g__block_count": 4,
    "g__embedding_length": 256,
    "g__attention__head_count": 4,
    "g__attention__head_count_kv": 2,
}


def test_the_catalog_that_ships_is_sound() -> None:
    rows = Catalog.load().rows
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.licence and row.description and row.context > 0
        if row.repo is None:
            assert row.name == "hearth-demo" and row.notice
        else:
            assert split_repo_file(f"{row.repo}:{row.file}") == (row.repo, row.file)
            assert row.size_bytes and row.ram_bytes and row.ram_bytes > row.size_bytes
        assert row.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", row.sha256)
    assert [row.name for row in rows if row.kind == "embedding"] == [
        "bge-small-en-v1.5",
        "nomic-embed-text-v1.5",
        "embeddinggemma",
    ]
    assert [row.name for row in rows if row.kind == "rerank"] == ["bge-reranker-v2-m3"]


def test_the_standard_model_serves_once_it_is_here(tmp_path: Path) -> None:
    unnamed = Settings(data_dir=tmp_path)
    assert resolve_model(unnamed).name == "hearth-demo"
    named = with_model_name(unnamed)
    standard = Catalog.load().standard
    path = standard.path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(header(**GEMMA))
    assert resolve_model(unnamed).name == standard.name
    assert resolve_model(named).name == "hearth-demo"  # a running server keeps its model
    assert resolve_model(settings(tmp_path, "hearth-demo")).name == "hearth-demo"


def test_a_pulled_model_resolves_with_its_row(tmp_path: Path) -> None:
    row = Catalog.load().get("gemma-4-e2b")
    assert row is not None
    path = row.path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(header(**GEMMA))
    model = resolve_model(settings(tmp_path, "gemma-4-e2b"))
    assert (model.name, model.path, model.context) == (row.name, path, row.context)
    assert model.ram_bytes == row.ram_bytes
    assert model.defaults.prompt_tokens == 3072
    # By its path or its place in the hub it is the same model.
    assert resolve_model(settings(tmp_path, str(path))) == model
    assert resolve_model(settings(tmp_path, f"{row.repo}:{row.file}")) == model
    larger = resolve_model(settings(tmp_path, "gemma-4-e2b", context=row.context + 1000))
    assert larger.ram_bytes == model.ram_bytes + 4 * 2 * (64 + 64) * 2 * 1000


def test_a_file_of_ones_own_is_estimated(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(header(**GEMMA))
    model = resolve_model(settings(tmp_path, str(path)))
    assert (model.name, model.context) == ("own", 8192)
    assert model.ram_bytes == estimate_ram(path, model.size_bytes, 8192)
    assert resolve_model(settings(tmp_path, str(path), context=512)).context == 512


@pytest.mark.parametrize(
    ("file", "like"),
    [
        ("smollm2-135m-hearth.8e5f35899a0a", "smollm2-135m-hearth"),
        ("SmolLM2-135M-Instruct.Q4_1", "smollm2-135m"),
        ("gemma-4-E2B-it-Q5_K_M", "gemma-4-e2b"),
    ],
)
def test_another_file_of_a_known_chat_model_is_treated_as_its_row_says(
    tmp_path: Path, file: str, like: str
) -> None:
    path, row = tmp_path / f"{file}.gguf", Catalog.load().get(like)
    path.write_bytes(header(**GEMMA))
    model = resolve_model(settings(tmp_path, str(path)))
    assert row is not None
    assert (model.name, model.defaults, model.languages, model.notice) == (
        file,
        row.defaults,
        row.languages,
        row.notice,
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gemma-4-e2b", "is not on this machine: run `hearth pull gemma-4-e2b`"),
        ("owner/repo:x.gguf", "is not on this machine: run `hearth pull owner/repo:x.gguf`"),
        ("gemma4-e2b", "unknown model `gemma4-e2b`: did you mean `gemma-4-e2b`"),
        ("qwxyz", "`hearth models` lists the known ones"),
        ("/nowhere/x.gguf", "there is no model file /nowhere/x.gguf"),
        ("embeddinggemma", "is an embedding model: choose a chat model"),
    ],
)
def test_what_cannot_be_used_says_what_to_do(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        resolve_model(settings(tmp_path, name))


def test_a_missing_built_in_model_says_so(tmp_path: Path) -> None:
    row = ModelRow(name="demo", file="demo/gone.gguf", description="d", licence="l", context=8)
    with pytest.raises(ConfigurationError, match="not part of this installation: `hearth pull"):
        resolve_model(settings(tmp_path, "demo"), Catalog([row]))


def test_a_broken_catalog_is_named(tmp_path: Path) -> None:
    file = tmp_path / "catalog.toml"
    file.write_text("[[model]]\nname = 'x'\ncolour = 'red'\n")
    with pytest.raises(ConfigurationError, match=r"catalog\.toml.*(colour|file)"):
        Catalog.load(file)
    row = "name = 'x'\nfile = 'f'\ndescription = 'd'\nlicence = 'l'\ncontext = 512\n"
    file.write_text(f"[[model]]\n{row}defaults = {{ reply_temperature = -1.0 }}\n")
    with pytest.raises(ConfigurationError, match=r">= 0\.0.*reply_temperature"):
        Catalog.load(file)


@pytest.mark.parametrize(
    "name", ["a/b:../x.gguf", "a/b:/x.gguf", "../b:x.gguf", "a/b", "a:b", "a/b:x//y", "a/b:c:d"]
)
def test_a_name_never_leaves_the_models_folder(name: str) -> None:
    assert split_repo_file(name) is None


def test_the_cache_estimate_follows_the_header(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(header(**GEMMA))
    assert kv_cache_bytes(path, 1000) == 4 * 2 * (64 + 64) * 2 * 1000
    path.write_bytes(header(**{**GEMMA, "g__attention__head_count_kv": [1, 2, 1, 2]}))
    assert kv_cache_bytes(path, 1) == 6 * 128 * 2
    path.write_bytes(header(**GEMMA, g__attention__key_length=32, g__attention__value_length=16))
    assert kv_cache_bytes(path, 1) == 8 * 48 * 2
    # The vocabulary is not read: what comes after it may be anything.
    path.write_bytes(header(**GEMMA, tokenizer__ggml__model="x")[:-3])
    assert kv_cache_bytes(path, 1) == 8 * 128 * 2


def test_the_real_tiny_model_has_a_header(tiny_model: Path) -> None:
    cache = kv_cache_bytes(tiny_model, 1024)
    assert cache is not None and 0 < cache < GIB


@given(st.binary(max_size=200), st.integers(0, 24))
def test_no_header_is_too_strange(tmp_path_factory: pytest.TempPathFactory, noise: bytes, keep: int) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.gguf"
    path.write_bytes(header(**GEMMA)[:keep] + noise)
    found = kv_cache_bytes(path, 1)
    assert found is None or found >= 0


def test_rows_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Catalog.load().rows[0].name = "other"  # type: ignore[misc]
    assert msgspec.json.encode(Catalog.load())


# --------------------------------------------------------------------------- embedding models


def with_embedding(data_dir: Path, **values: Any) -> Settings:
    return Settings(data_dir=data_dir, embedding=EmbeddingSettings(**values))


def test_embeddinggemma_has_the_prompts_it_was_trained_with() -> None:
    row = Catalog.load().get("embeddinggemma")
    assert row is not None
    assert (row.kind, row.dimensions, row.architecture) == ("embedding", 256, "gemma-embedding")
    assert row.prompts.query == "task: search result | query: {text}"
    assert (row.prompts.document, row.prompts.untitled) == ("title: {title} | text: {text}", "none")


def test_another_file_of_a_known_architecture_gets_its_prompts(
    tmp_path: Path, tiny_embedding_model: Path
) -> None:
    found = resolve_embedding_model(with_embedding(tmp_path, model=str(tiny_embedding_model)))
    assert found is not None
    assert (found.kind, found.context, found.dimensions) == (
        "embedding",
        2048,
        None,
    )  # its vectors are shorter
    assert found.prompts.untitled == "none"
    assert found.name_setting == "embedding.model"
    shorter = resolve_embedding_model(
        with_embedding(tmp_path, model=str(tiny_embedding_model), dimensions=32)
    )
    assert shorter is not None
    assert shorter.dimensions == 32
    with pytest.raises(ConfigurationError, match=r"`embedding\.dimensions` is 65, but .* have 64"):
        resolve_embedding_model(with_embedding(tmp_path, model=str(tiny_embedding_model), dimensions=65))


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        (
            "my-BGE-small-en-v1.5.Q4_K_M",
            "Represent this sentence for searching relevant passages: {text}",
            "{title}\n{text}",
        ),
        ("nomic-embed-text-v1.5.f16", "search_query: {text}", "search_document: {title}\n{text}"),
        ("all-MiniLM-L6-v2", "{text}", "{title}\n{text}"),
    ],
)
def test_another_file_of_a_known_model_gets_its_prompts(
    tmp_path: Path, tiny_bert: Path, name: str, query: str, document: str
) -> None:
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(tiny_bert.read_bytes())
    found = resolve_embedding_model(with_embedding(tmp_path, model=str(path)))
    assert found is not None
    assert (found.prompts.query, found.prompts.document) == (query, document)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("embeddinggemma", "hearth pull embeddinggemma"),
        ("gemma-4-e2b", "is a chat model: choose an embedding model"),
        ("embeddinggema", "did you mean `embeddinggemma`"),
        ("/no/such.gguf", "there is no model file"),
    ],
)
def test_an_embedding_model_that_cannot_be_says_why(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        resolve_embedding_model(with_embedding(tmp_path, model=name))


def test_without_an_embedding_model_there_is_none_beside(tmp_path: Path) -> None:
    assert models_beside(with_embedding(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "small"),
    [("hearth-demo", True), ("smollm2-135m", True), ("gemma-4-e2b", False), ("google/gemma-3-4b-it", False)],
)
def test_a_small_model_is_one_on_other_servers_too(tmp_path: Path, name: str, small: bool) -> None:
    upstream = UpstreamSettings(urls=["http://127.0.0.1:1"], model=name)
    assert resolve_model(Settings(data_dir=tmp_path, upstream=upstream)).small == small
    if name == "hearth-demo":
        model = resolve_model(settings(tmp_path, name))
        assert model.small and not model.memory_proposals
