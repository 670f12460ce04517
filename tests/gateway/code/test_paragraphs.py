"""Which paragraph of a project answers a question, and which options are described."""

from __future__ import annotations

import pytest

from gateway.code.answers.paragraphs import stem
from gateway.wiki.source import KnownAnswer
from tests.gateway.code.conftest import Ask

FILES: dict[str, str | bytes] = {
    "README.md": "# Kiln\n\nFires pots.\n\n## Installation\n\n### With a package manager\n\n"
    "Kiln is in the registry.\n\n```\nnpm install kiln\n```\n\n### Agents\n\nAgents install it themselves.\n",
    "docs/api.rst": "Glazes\n======\n\n.. automodule:: kiln.glazes\n   :members:\n\n.. _ramps:\n\nRamps\n=====\n\n"
    "Some ramps take long.\n\nA **ramp** is a schedule of temperatures.\n",
    "docs/cli.rst": "Commands\n========\n\n*   ``fire``: Fires a pot.\n*   ``list``: Lists the cones.\n"
    "*   ``log``: Writes a log.\n*   ``watch``: Watches the door.\n*   ``melt``: Melts a glaze.\n"
    "*   ``--soak=MINUTES``: How long the kiln holds the highest temperature.\n",
    "docs/third_party_licenses.rst": "Licences\n========\n\nThis glazing software is licensed to the ceramic guild.\n",
    "kiln/glazes.py": '"""Glazes melt at a temperature of their own."""\n\n\n'
    "def mix(parts, strict=False):\n"
    '    """Mix a glaze.\n\n    :param strict:\n        ``True`` if unknown parts are an error.\n    """\n'
    "    def known(part):\n        return part in PARTS\n\n    strict = strict or DEBUG\n"
    "    return [part for part in parts if known(part)]\n\n\n"
    'class GlazeReader:\n    """Reads recipes of glazes."""\n\n\nclass Shelf: ...\n\n\n'
    'class RecipeList:\n    def keep_names(self):\n        """Keeps the names of recipes."""\n\n\nclass Recipe: ...\n',
    "web/cone.js": "export const cone = (heat) => new Cone(heat)\n",
}


def first(answer: KnownAnswer) -> str:
    return answer.sources[0].url


async def test_markup_is_no_text(ask: Ask) -> None:
    answer = await ask("How do glazes melt?")
    assert first(answer) == "kiln/glazes.py:1", "not the directive under the heading Glazes"


async def test_a_sentence_that_says_what_it_is_comes_first(ask: Ask) -> None:
    assert "A **ramp** is a schedule" in (await ask("What are ramps?")).text
    assert "Some ramps take long." in (await ask("Do ramps take long?")).text


async def test_a_chapter_and_code_tell_how(ask: Ask) -> None:
    answer = await ask("How do I install it?")
    assert first(answer) in ("README.md:7", "README.md:9")
    assert "npm install kiln" in answer.text


async def test_the_name_of_the_project_says_nothing(ask: Ask) -> None:
    assert first(await ask("How do I install shop?")) == first(await ask("How do I install it?"))


async def test_words_of_different_entries_are_no_answer(ask: Ask) -> None:
    answer = await ask("Does it fire when glazes melt?")
    assert "do not say this" in answer.text
    assert "`*   ``melt``: Melts a glaze.`" in answer.text, "the closest places show what they say"


async def test_licences_of_others_answer_questions_about_licences_alone(ask: Ask) -> None:
    assert "do not say this" in (await ask("Is there a ceramic guild?")).text
    assert first(await ask("Which license has the ceramic guild?")).startswith(
        "docs/third_party_licenses.rst"
    )


@pytest.mark.parametrize(
    ("question", "place", "text"),
    [
        ("What does the strict option do?", "kiln/glazes.py:7", "``True`` if unknown parts are an error."),
        ("what does --soak do", "docs/cli.rst:9", "How long the kiln holds the highest temperature."),
    ],
)
async def test_an_option_is_described_where_its_entry_is(
    ask: Ask, question: str, place: str, text: str
) -> None:
    answer = await ask(question)
    assert [source.url for source in answer.sources] == [place]
    assert text in answer.text


async def test_an_option_that_nothing_describes_is_shown_where_it_stands(ask: Ask) -> None:
    assert "`parts` stands in" in (await ask("What does the parts argument do?")).text


async def test_what_inner_functions_return_is_not_returned(ask: Ask) -> None:
    answer = await ask("What does mix return?")
    assert "return [part for part in parts if known(part)]" in answer.text
    assert "return part in PARTS" not in answer.text


async def test_which_class_is_about_something(ask: Ask) -> None:
    answer = await ask("Which class reads the recipes?")
    assert first(answer) == "kiln/glazes.py:17"
    assert "Reads recipes of glazes." in answer.text
    assert first(await ask("Which class represents a recipe?")).startswith("kiln/glazes.py:29")


async def test_a_setting_may_be_a_method(ask: Ask) -> None:
    assert "Keeps the names of recipes." in (await ask("What does the keep_names setting do?")).text


async def test_an_arrow_returns_its_expression(ask: Ask) -> None:
    assert "its value is `new Cone(heat)`" in (await ask("What does cone return?")).text


@pytest.mark.parametrize(
    "forms",
    [
        ("user", "users"),
        ("recursive", "recursively"),
        ("automatic", "automatically"),
        ("cancel", "cancelled", "cancels", "cancelling"),
        ("install", "installation", "installing"),
        ("directory", "directories"),
        ("class", "classes"),
        ("configure", "configuration", "configured"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_other_words_have_other_stems() -> None:
    words = ["use", "user", "set", "sort", "short", "apply", "app", "pass", "path", "string", "thing"]
    assert len({stem(word) for word in words}) == len(words)
