"""What the gateway reads of a model file itself: never more than a file tells, and no file stops it."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from gateway.base.resources import bundled
from gateway.models.gguf_header import chat_template, header_pairs


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def header(*pairs: bytes) -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs)) + b"".join(pairs)


def test_the_built_in_model() -> None:
    path = bundled("models/demo/hearth-demo.gguf")
    template = chat_template(path)
    assert template is not None
    assert "<start_of_turn>" in template
    pairs = header_pairs(path)
    assert pairs["general.architecture"] == "gemma3"
    assert not any(name.startswith("tokenizer.") for name in pairs)


def test_the_template_comes_after_a_vocabulary(tmp_path: Path) -> None:
    words = b"".join(string(f"w{i}") for i in range(5000))
    path = tmp_path / "m.gguf"
    path.write_bytes(
        header(
            string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 5000) + words,
            string("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
            string("tokenizer.ggml.bos") + struct.pack("<II", 4, 2),
            string("tokenizer.chat_template") + struct.pack("<I", 8) + string("{{ tools }}"),
        )
    )
    assert chat_template(path) == "{{ tools }}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GGUF",
        b"PK\x03\x04" + bytes(40),
        header(string("tokenizer.x") + struct.pack("<IIQ", 9, 8, 2**60)),
        header(string("tokenizer.x") + struct.pack("<IQ", 8, 2**63)),
        header(string("tokenizer.x") + struct.pack("<IIQ", 9, 9, 1)),
        header(string("tokenizer.x") + struct.pack("<I", 77)),
        header(string("tokenizer.chat_template") + struct.pack("<IQ", 8, 100) + b"short"),
        header(string("tokenizer.ggml.bos") + struct.pack("<II", 4, 2)),
    ],
)
def test_what_does_not_parse_is_not_known(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    assert chat_template(path) is None
    assert chat_template(tmp_path / "absent.gguf") is None
    header_pairs(path)


def test_damaged_files(tmp_path: Path) -> None:
    whole = bundled("models/demo/hearth-demo.gguf").read_bytes()[:200_000]
    generator = random.Random(1)
    path = tmp_path / "m.gguf"
    for _ in range(60):
        data = bytearray(whole[: generator.randrange(24, len(whole))])
        for _ in range(5):
            data[generator.randrange(min(len(data), 2000))] = generator.randrange(256)
        path.write_bytes(data)
        assert isinstance(chat_template(path), str | None)
        assert isinstance(header_pairs(path), dict)
