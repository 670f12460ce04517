"""Long text is tokenized in linear time, and no text crashes the host."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.engine.long_text import PART_CHARS, in_parts
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess

sys.path.insert(0, str(ROOT / "models"))
import random_gemma


@given(st.text(alphabet="ab1 .\n漢😀", max_size=20), st.integers(1, 2000))
def test_parts_join_to_the_text(text: str, times: int) -> None:
    parts = in_parts(text * times)
    assert "".join(parts) == text * times
    assert all(0 < len(part) <= PART_CHARS for part in parts)


def test_a_cut_is_where_a_word_begins() -> None:
    parts = in_parts("many words and\nlines " * 500)
    assert len(parts) > 2
    assert all(part[0] == " " or before[-1] == "\n" for before, part in pairwise(parts))


@pytest.mark.parametrize("letter", ["\n", "漢", "7", "a"])
def test_megabytes_of_one_letter_are_counted_in_time(host: HostProcess, letter: str) -> None:
    """Letters that the vocabulary lacks used to take minutes, during which no other request was prepared."""
    one = f"one-{ord(letter)}"
    host.send(op="count", id=one, texts=[letter, letter * 1000])
    single, thousand = host.end(one)["counts"]
    many = f"many-{ord(letter)}"
    host.send(op="count", id=many, texts=[letter * 1_300_000])
    (count,) = host.end(many)["counts"]
    assert count <= 1_300_000 * single
    assert count >= 1_300_000 * thousand / 1000 * 0.99


def test_a_cut_changes_no_token(host: HostProcess) -> None:
    line = " A line of words, with numbers (1, 22) and marks: naïve!"
    host.send(op="count", id="short", texts=[line * 20, line], return_tokens=True)
    host.send(op="count", id="long", texts=[line * 20 * 50], return_tokens=True)
    twenty, _ = host.end("short")["tokens"]
    (long,) = host.end("long")["tokens"]
    assert long == twenty * 50


def test_a_long_word_does_not_end_a_host_with_a_bpe_vocabulary(start_host: StartHost, tmp_path: Path) -> None:
    """llama.cpp's pre-tokenizer recursed once per letter and overflowed the stack."""
    host = start_host(model=bpe_model(tmp_path))
    host.send(op="count", id="long", texts=["a" * 1_000_000])
    assert host.end("long")["counts"] == [500_000]
    host.send(op="count", id="words", texts=["aa aa"])
    assert host.end("words")["counts"] == [3]
    assert host.stop() == 0


def bpe_model(folder: Path) -> Path:
    """Random weights with a byte-level vocabulary whose one merge makes ``aa``, and a pre-tokenizer of patterns."""
    vocabulary, model = folder / "vocabulary.gguf", folder / "bpe.gguf"
    letters = [*_byte_letters(), "aa", "<bos>", "<eos>"]
    writer = gguf.GGUFWriter(vocabulary, "gemma3")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("deepseek-llm")
    writer.add_token_list(letters)
    writer.add_token_types([gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL] * 2)
    writer.add_token_merges(["a a"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(258)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    random_gemma.write(model, vocabulary=vocabulary)
    return model


def _byte_letters() -> list[str]:
    """The letter for each byte in GPT-2's vocabularies: the byte itself if it is printable."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
