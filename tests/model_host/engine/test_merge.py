"""A merged file answers as the base does with its adapter, in llama.cpp itself."""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import pytest

from model_host.engine.merge import MergeError, merge
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT

sys.path.insert(0, str(ROOT / "models"))
import random_lora

QUESTION = [{"role": "user", "content": "The owl at the mill writes down every name that the river says."}]


def merged(base: Path, adapter: Path, out: Path, matrices: str) -> Path:
    steps = list(merge(base, adapter, out, matrices))
    assert [done for done, _ in steps] == list(range(1, steps[0][1] + 1))
    return out


def test_a_merged_model_writes_the_tokens_of_its_base_with_the_adapter(
    start_host: StartHost, tiny_model: Path, tmp_path: Path
) -> None:
    adapter = tmp_path / "owl.gguf"
    random_lora.write(tiny_model, adapter, seed=3)
    out = merged(tiny_model, adapter, tmp_path / "merged.gguf", "F32")
    replies = []
    for model, more in ((tiny_model, ["--adapter", f"owl={adapter}"]), (out, [])):
        host = start_host("--threads", "1", *more, model=model)
        fields = {"adapter": "owl"} if more else {}
        host.generate("a", messages=QUESTION, max_tokens=16, ignore_eos=True, logprobs=0, **fields)
        host.text("a")
        replies.append([each["bytes"] for event in host.events["a"] for each in event.get("logprobs", [])])
    assert len(replies[0]) == 16
    assert replies[0] == replies[1]


def test_matrices_are_quantized_and_the_rest_keeps_its_bytes(tiny_model: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "owl.gguf"

    def details(writer: gguf.GGUFWriter) -> None:
        writer.add_name("An owl")
        writer.add_chat_template("{{ messages[0]['content'] }}")

    random_lora.write(tiny_model, adapter, seed=3, details=details)
    out = merged(tiny_model, adapter, tmp_path / "merged.gguf", "Q8_0")
    before = {each.name: each for each in gguf.GGUFReader(tiny_model).tensors}
    reader = gguf.GGUFReader(out)
    assert {each.name for each in reader.tensors} == set(before)
    for tensor in reader.tensors:
        if "norm" in tensor.name or tensor.name == "token_embd.weight":
            assert tensor.tensor_type == before[tensor.name].tensor_type
            assert tensor.data.tobytes() == before[tensor.name].data.tobytes()
        else:
            assert tensor.tensor_type == gguf.GGMLQuantizationType.Q8_0
    pairs = {key: field.contents() for key, field in reader.fields.items()}
    assert pairs["general.name"] == "An owl"
    assert pairs["tokenizer.chat_template"] == "{{ messages[0]['content'] }}"
    assert pairs["general.architecture"] == "gemma3"


def test_files_that_do_not_belong_together_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    other, text = tmp_path / "other.gguf", tmp_path / "text.gguf"
    random_lora.write(tiny_model, other, architecture="llama")
    text.write_text("GGUF? No.")
    for base, adapter, reason in (
        (tiny_model, other, "no LoRA adapter of gemma3"),
        (tiny_model, tiny_model, "no LoRA adapter of gemma3"),
        (tiny_model, text, "cannot be read as GGUF"),
        (tmp_path / "none.gguf", other, "cannot be read as GGUF"),
    ):
        with pytest.raises(MergeError, match=reason):
            list(merge(base, adapter, tmp_path / "out.gguf"))
