"""What makes a start fast: light bindings, a load that began early, one scan of the vocabulary."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import llama_cpp
import pytest

from model_host.engine.load import Load, LoadError, begin_load, take_load
from model_host.engine.vocabulary import Vocabulary
from model_host.engine.weights import Weights

ROOT = Path(__file__).resolve().parents[2]

LIGHT = """
import sys
from model_host.engine import bindings
bindings.import_light()
import llama_cpp
light = {name for name in vars(llama_cpp) if not name.startswith("_")}
heavy = [name for name in ("numpy", "jinja2", "diskcache") if name in sys.modules]
for name in [name for name in sys.modules if name.split(".")[0] == "llama_cpp"]:
    del sys.modules[name]
import llama_cpp
missing = {name for name in vars(llama_cpp.llama_cpp) if not name.startswith("_")} - light
print(heavy, missing)
bindings.import_light()
print(hasattr(llama_cpp, "Llama"))
"""


def test_light_bindings_are_complete_and_bring_nothing_else() -> None:
    command = [sys.executable, "-c", LIGHT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] set()", "True"]


def test_a_load_that_was_begun_is_given_out_once(tiny_model: Path) -> None:
    begin_load(tiny_model)
    load = take_load(tiny_model)
    fractions: list[float] = []
    assert load.wait(lambda fraction: fractions.append(fraction) is None)
    assert fractions
    other = take_load(tiny_model)
    assert other is not load
    other.wait(lambda _: True)


def test_a_load_fails_where_it_is_waited_for(tmp_path: Path) -> None:
    begin_load(tmp_path / "none.gguf")
    with pytest.raises(LoadError, match="there is no model file"):
        Weights(tmp_path / "none.gguf", lambda _: True)
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(LoadError, match="cannot be loaded"):
        Load(damaged).wait(lambda _: True)


def test_one_look_finds_what_asking_for_every_token_finds(
    tiny_model: Path, tool_models: dict[str, Path]
) -> None:
    for path in (tiny_model, *tool_models.values()):
        vocabulary = Weights(path, lambda _: True).vocabulary
        assert vocabulary.ending_ids == [each for each in range(vocabulary.size) if vocabulary.ends(each)]
        assert vocabulary._reserved == {each for each in range(vocabulary.size) if reserved(vocabulary, each)}


def test_control_tokens_of_a_text_are_those_that_a_pattern_of_all_finds(
    tiny_model: Path, tool_models: dict[str, Path]
) -> None:
    for path in (tiny_model, *tool_models.values()):
        weights = Weights(path, lambda _: True)
        vocabulary = weights.vocabulary
        spellings = sorted(map(vocabulary.text, vocabulary._reserved), key=len, reverse=True)
        assert len(spellings) > 2
        every = "".join(f"<{spelling}{spelling[:-1]}{spelling} " for spelling in spellings)
        for text in (weights.template or "", every, "", "<"):
            expected = [match.span() for match in re.finditer("|".join(map(re.escape, spellings)), text)]
            assert list(vocabulary.controls(text)) == expected


def reserved(vocabulary: Vocabulary, token: int) -> bool:
    handle, spelling = vocabulary.handle, vocabulary.text(token)
    if llama_cpp.llama_vocab_is_control(handle, token) or vocabulary.ends(token):
        return True
    attribute = llama_cpp.llama_vocab_get_attr(handle, token)
    marks = len(spelling) > 1 and not spelling.isspace() and spelling in vocabulary._template
    return bool(attribute & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED and marks)
