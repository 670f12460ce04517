"""Prompt files: what they say, how they are filled in, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import ConfigurationError, InvalidRequestError, NotFoundError
from gateway.models.prompts import load_prompts, read_prompt
from model_host.protocol import TextPart

GOOD = """+++
name = "greet"
version = 3
lane = "background"
variables = ["who", "what"]

[sampling]
temperature = 0.5
max_tokens = 9
+++
Say {{what}} to {{ who }}.
Then {{what}} again.
"""


def write(folder: Path, text: str, name: str = "greet") -> Path:
    path = folder / f"{name}.md"
    path.write_text(text)
    return path


def test_the_shipped_prompts() -> None:
    prompts = load_prompts()
    assert set(prompts.names()) >= {"search_terms", "compact_article", "answer_plain", "answer_irc"}
    terms = prompts.get("search_terms")
    assert (terms.version, terms.lane, terms.max_tokens, terms.sampling.temperature) == (
        1,
        "interactive",
        200,
        0.0,
    )
    assert terms.schema is not None
    assert terms.schema["maxItems"] == 3
    assert prompts.get("answer_plain").schema is None


def test_a_prompt_is_filled_in(tmp_path: Path) -> None:
    prompt = read_prompt(write(tmp_path, GOOD))
    assert (prompt.version, prompt.lane, prompt.max_tokens) == (3, "background", 9)
    (message,) = prompt.render(shared=("what",), who="{{what}}", what="hello")
    assert message.role == "user"
    assert message.content == [
        TextPart("Say ", True),
        TextPart("hello", True),
        TextPart(" to ", True),
        TextPart("{{what}}", False),
        TextPart(".\nThen ", True),
        TextPart("hello", True),
        TextPart(" again.", True),
    ]


@given(st.text(), st.text())
def test_values_are_only_ever_values(background: str, question: str) -> None:
    prompt = load_prompts().get("answer_plain")
    (message,) = prompt.render(shared=("background",), background=background, question=question)
    assert isinstance(message.content, list)
    private = [part.text for part in message.content if not part.shared]
    assert private == ([question] if question else [])
    assert all(part.text for part in message.content)
    whole = "".join(part.text for part in message.content)
    assert f"Background:\n\n{background}\n\nQuestion: {question}\n\n" in whole


def test_wrong_variables_are_named(tmp_path: Path) -> None:
    prompt = read_prompt(write(tmp_path, GOOD))
    with pytest.raises(InvalidRequestError, match="`greet` needs a value for `who`"):
        prompt.render(what="x")
    with pytest.raises(InvalidRequestError, match="`greet` has no variable `whom`"):
        prompt.render(what="x", who="y", whom="z")
    with pytest.raises(InvalidRequestError, match="no variable `whom`"):
        prompt.render(shared=("whom",), what="x", who="y")


def test_unknown_names_and_styles_list_what_there_is() -> None:
    prompts = load_prompts()
    with pytest.raises(NotFoundError, match="search_terms"):
        prompts.get("nope")
    assert {"plain", "irc"} <= set(prompts.styles())
    assert prompts.style("irc").name == "answer_irc"
    with pytest.raises(InvalidRequestError, match="irc, plain") as caught:
        prompts.style("haiku")
    assert caught.value.param == "style"


def test_the_data_directory_overrides_and_adds(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace('"greet"', '"answer_plain"'), "answer_plain")
    write(tmp_path, GOOD)
    prompts = load_prompts(tmp_path)
    assert prompts.get("answer_plain").version == 3
    assert prompts.get("greet").version == 3
    assert load_prompts(tmp_path / "missing").names() == load_prompts().names()


def test_several_versions_lie_side_by_side(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD.replace("version = 3", "version = 2").replace("Then", "And"), "greet@2")
    shipped = load_prompts().get("answer_plain")
    write(
        tmp_path,
        GOOD.replace('"greet"', '"answer_plain"').replace("version = 3", "version = 9"),
        "answer_plain",
    )
    prompts = load_prompts(tmp_path)
    assert prompts.get("greet").version == 3
    assert "And" in "".join(prompts.version("greet", 2).pieces)
    assert (prompts.get("answer_plain").version, prompts.version("answer_plain", 1)) == (9, shipped)
    with pytest.raises(InvalidRequestError, match=r"version 2, 3 \(3 is in use\), not in 4; .*`greet@4.md`"):
        prompts.version("greet", 4)
    with pytest.raises(NotFoundError):
        prompts.version("nope", 1)
    assert "greet@2" not in prompts.names()
    older = prompts.with_version(2)
    assert (older.get("greet").version, older.get("answer_plain").version) == (2, 9)
    assert older.with_version(3).get("greet") == prompts.get("greet")


def test_a_version_beside_nothing_is_refused(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "greet@3")
    with pytest.raises(ConfigurationError, match=r"needs a `greet.md` beside it"):
        load_prompts(tmp_path)
    write(tmp_path, GOOD, "greet@2")
    with pytest.raises(ConfigurationError, match="`version` is 3, but the file's name says `2`"):
        load_prompts(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 3", "version = 0", "version"),
        ("version = 3", 'version = "3"', "version"),
        ("version = 3\n", "", "version"),
        ("version = 3", "version = 3\nauthor = 1", "author"),
        ("version = 3", "version = ", "line 3"),
        ('lane = "background"', 'lane = "fast"', "lane"),
        ("temperature = 0.5", "temprature = 0.5", "temprature"),
        ("temperature = 0.5", "temperature = 50.0", "temperature"),
        ("max_tokens = 9", "max_tokens = 0", "max_tokens"),
        ("Then {{what}}", "Then {{when}}", "line 12: `{{when}}` is not declared"),
        ("to {{ who }}.", "to you.", "`who`, which the text does not use"),
        ("to {{ who }}.", "to {{ who }} {{.", "begins no"),
        ('["who", "what"]', '["who", "what", "who"]', "twice"),
        ('name = "greet"', 'name = "meet"', "file's name says `greet`"),
        ("[sampling]", "[output]\nschema = {}\ngrammar = 'x'\n[sampling]", "both"),
        ("[sampling]", "[output]\nxml = 1\n[sampling]", "xml"),
        ("9\n+++\n", "9\n", "not closed"),
        ("+++\nname", "name", "line 1"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=r"greet\.md") as caught:
        load_prompts(path.parent)
    assert message in caught.value.message
