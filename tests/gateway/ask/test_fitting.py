"""Long pages through the whole flow: the best passages, a summary beside them, and reports of what is left out."""

from __future__ import annotations

import pytest

from gateway.models.catalog import FlowDefaults
from tests.gateway.ask.helpers import Asked, MemoryWiki, Model, page

# 200 different words, so that summaries can be told from their source.
LONG = " ".join(f"The fact number {n} of Befunge is word{n}." for n in range(25))
# So many passages match equally well that no choice among them shows what the page says.
ENDLESS = " ".join(f"The fact number {n} of Befunge is word{n}." for n in range(200))
QUESTION = "Which facts of Befunge are there?"
FACT = "The fact number 3 of Befunge is word3."
LOOP = "The fact number 150 of Befunge is word150."


async def test_a_long_page_is_cut_to_the_passages_that_match() -> None:
    wiki = MemoryWiki(page("Befunge", "Befunge is old.", ("Filler", LONG), ("Playfield", "It has 25 rows.")))
    asked = Asked(Model(["Befunge"], "It has 25 rows."), wiki, prompt_tokens=200)
    result = await asked.ask("How many rows has the playfield of Befunge?")
    (used,) = asked.records[0].pages
    assert (used.how, result.answer) == ("passages", "It has 25 rows. [1]")
    assert asked.records[0].details["left_out"][0]["title"] == "Befunge"
    assert asked.stages("answer")[0]["in_part"] == ["Befunge"]
    assert result.budget.prompt_tokens <= 200


async def test_without_a_match_a_page_is_shown_from_its_beginning() -> None:
    """A page can be found by its meaning alone."""
    model = Model(["Befunge"], "word1")
    asked = Asked(model, MemoryWiki(page("Xyz", LONG)), prompt_tokens=200, passage_tokens=20)
    result = await asked.ask("xyz zzz?")
    assert "The fact number 0 of Befunge is word0." in model.prompts("answer")[0]
    assert result.budget.prompt_tokens <= 200


async def test_the_best_passages_of_two_pages_share_the_prompt() -> None:
    filler = " ".join(f"Nothing is told here in sentence {n}." for n in range(60))
    wiki = MemoryWiki(
        page("Befunge", filler, ("Author", "Chris Pressey made Befunge.")),
        page(
            "Piet",
            filler.replace("Nothing is told", "What was said before stands"),
            ("Author", "David Morgan-Mar made Piet."),
        ),
    )
    model = Model("[]", "Chris Pressey made Befunge. David Morgan-Mar made Piet.")
    result = await Asked(model, wiki, prompt_tokens=200).ask("Who made Befunge and who made Piet?")
    assert result.answer == "Chris Pressey made Befunge. [1] David Morgan-Mar made Piet. [2]"
    assert result.budget.prompt_tokens <= 200


PIET = page(
    "Piet",
    "Piet is a language whose programs are pictures.",
    ("History", "David Morgan-Mar made Piet in 2001. He named it after a painter."),
    ("Colours", "There are 20 colours in Piet. A codel is one pixel of it."),
)
CHEF = page(
    "Chef", "Chef is a language whose programs are recipes. Piet has the same author, David Morgan-Mar."
)


async def test_all_questions_about_a_page_begin_with_all_of_it() -> None:
    """Only the first of them is then prefilled; the others are in the cache up to the question."""
    model = Model("[]", "He named it after a painter.")
    asked = Asked(model, MemoryWiki(CHEF, PIET))
    await asked.ask("Who made Piet?")
    result = await asked.ask("How many colours are there in Piet?")
    first, second = model.prompts("answer")
    shared, _, question = second.partition("Question: ")
    assert question.startswith("How many colours") and first.startswith(shared)
    assert "named it after a painter" in shared and "There are 20 colours" in shared
    assert [(each.title, each.how) for each in asked.records[1].pages] == [("Piet", "whole")]
    assert {each.reason for each in result.skipped if each.title == "Chef"} == {
        "another page clearly answers"
    }


async def test_other_pages_follow_where_the_page_does_not_clearly_answer() -> None:
    asked = Asked(Model("[]", "word"), MemoryWiki(CHEF, PIET))
    await asked.ask("Which recipes did the author of Piet write down?")
    assert [(each.title, each.how) for each in asked.records[0].pages] == [
        ("Chef", "whole"),
        ("Piet", "passages"),
    ]


async def test_a_small_model_gets_passages_only() -> None:
    filler = [(f"Part {n}", f"Nothing of interest stands here in part {n}.") for n in range(9)]
    wiki = MemoryWiki(
        page("Piet", "Piet is a language.", *filler, ("History", "David Morgan-Mar made Piet."))
    )
    for small, how in ((True, "passages"), (False, "whole")):
        asked = Asked(Model("[]", "word"), wiki, small=small)
        await asked.ask("Who made Piet?")
        assert [each.how for each in asked.records[0].pages] == [how]


def endless() -> MemoryWiki:
    return MemoryWiki(page("Befunge", ENDLESS))


async def test_too_many_matches_are_summarized_beside_the_best_ones() -> None:
    model = Model(["Befunge"], FACT, "The fact number 123 of Befunge is word123.")
    asked = Asked(model, endless(), prompt_tokens=380, answer_tokens=200, passage_tokens=40)
    result = await asked.ask(QUESTION)
    assert [used.how for used in asked.records[0].pages] == ["summary"]
    (prompt,) = model.prompts("compact")
    words = asked.stages("compact")[0]["words"]
    assert f"Use {words} words or fewer" in prompt
    (answer_prompt,) = model.prompts("answer")
    assert "The fact number 123 of Befunge is word123. [1]" in answer_prompt
    assert "The fact number 0 of Befunge is word0." in answer_prompt  # the page's own words are there, too
    assert "The fact number 0 of Befunge is word0." not in prompt  # which the summary need not repeat
    assert result.budget.prompt_tokens <= 380


async def test_the_cap_on_words_comes_from_the_catalog() -> None:
    model = Model(["Befunge"], "", FACT)
    defaults = FlowDefaults(compaction_words=25)
    asked = Asked(model, endless(), prompt_tokens=380, answer_tokens=200, defaults=defaults)
    await asked.ask(QUESTION)
    assert asked.stages("compact")[0]["words"] == 25


@pytest.mark.parametrize(
    ("summary", "note", "value"),
    [
        ("Nothing relevant.", "summary_left_out", "the model found nothing relevant"),
        ("", "summary_left_out", "it says nothing that the page supports"),
        (
            "It was written by Ben Olmstead in 1998.",
            "summary_left_out",
            "it says nothing that the page supports",
        ),
        (
            "Befunge is is is is is is is a fact number.",
            "summary_left_out",
            "it says nothing that the page supports",
        ),
        (f"{LOOP} " * 9, "summary_dropped", [LOOP] * 8),
    ],
)
async def test_bad_summaries_take_nothing_away(summary: str, note: str, value: object) -> None:
    """The page stays with its best passages, and a sentence that a loop repeats counts once."""
    model = Model(["Befunge"], FACT, summary)
    asked = Asked(model, endless(), prompt_tokens=380, answer_tokens=400, passage_tokens=40)
    result = await asked.ask(QUESTION)
    ((noted,),) = (asked.records[0].details[note],)
    assert value in noted.values()
    assert [used.title for used in asked.records[0].pages] == ["Befunge"]
    assert "The fact number 0 of Befunge is word0." in model.prompts("answer")[0]
    assert model.prompts("answer")[0].count(LOOP) <= 1
    assert result.budget.prompt_tokens <= 380


async def test_pages_without_space_are_reported() -> None:
    wiki = MemoryWiki(page("Befunge", LONG), page("Befunge 2", LONG.replace("word", "term")))
    asked = Asked(
        Model(["Befunge"], "word1"), wiki, prompt_tokens=150, answer_tokens=200, min_space_tokens=20
    )
    result = await asked.ask("Is word7 in Befunge?")
    assert [each.title for each in asked.records[0].pages] == ["Befunge"]
    assert [(each.title, each.reason) for each in result.skipped][1:] == [
        ("Befunge 2", "no space left in the prompt for passages that match less well")
    ]
