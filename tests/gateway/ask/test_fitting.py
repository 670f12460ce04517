"""Long pages through the whole flow: cut to sections, summarized, or left out, and always reported."""

from __future__ import annotations

import pytest

from gateway.models.catalog import FlowDefaults
from tests.gateway.ask.helpers import Asked, MemoryWiki, Model, page

# 200 different words, so that summaries can be told from their source.
LONG = " ".join(f"The fact number {n} of Befunge is word{n}." for n in range(25))


async def test_a_long_page_is_cut_to_the_sections_that_match() -> None:
    wiki = MemoryWiki(page("Befunge", "Befunge is old.", ("Filler", LONG), ("Playfield", "It has 25 rows.")))
    asked = Asked(Model(["Befunge"], "It has 25 rows."), wiki, prompt_tokens=200)
    result = await asked.ask("How many rows has the playfield of Befunge?")
    (used,) = asked.records[0].pages
    assert (used.how, result.answer) == ("sections", "It has 25 rows. [1]")
    assert asked.records[0].details["left_out"] == [
        {"title": "Befunge", "sections": ["Filler"], "cut": False}
    ]
    assert asked.stages("answer")[0]["in_part"] == ["Befunge"]
    assert result.budget.prompt_tokens <= 200


async def test_a_page_without_matching_sections_is_truncated() -> None:
    asked = Asked(
        Model(["Befunge"], "word1"), MemoryWiki(page("Befunge", LONG)), prompt_tokens=200, passage_tokens=20
    )
    result = await asked.ask("zzz Befunge?")
    (used,) = asked.records[0].pages
    assert used.how == "truncated"
    assert asked.records[0].details["left_out"][0]["cut"]
    assert result.budget.prompt_tokens <= 200


def two_long_pages() -> MemoryWiki:
    return MemoryWiki(page("Befunge", LONG), page("Befunge 2", LONG.replace("word", "term")))


async def test_pages_over_the_space_left_are_summarized() -> None:
    model = Model(["Befunge"], "The fact number 3 is term3.", "The fact number 3 of Befunge is term3.")
    asked = Asked(model, two_long_pages(), prompt_tokens=380, answer_tokens=200)
    result = await asked.ask("Which is fact number 3 of Befunge?")
    assert [used.how for used in asked.records[0].pages] == ["whole", "summary"]
    (prompt,) = model.prompts("compact")
    words = asked.stages("compact")[0]["words"]
    assert f"Use {words} words or fewer" in prompt
    assert 20 <= words < 200
    assert "Text of the page Befunge 2:\n\nThe fact number 0 of Befunge is term0." in prompt
    assert "[2] Befunge 2\nThe fact number 3 of Befunge is term3. [2]" in model.prompts("answer")[0]
    assert result.answer == "The fact number 3 is term3. [2]"
    assert result.budget.prompt_tokens <= 380


async def test_the_cap_on_words_comes_from_the_catalog() -> None:
    model = Model(["Befunge"], "", "The fact number 3 of Befunge is term3.")
    asked = Asked(
        model,
        two_long_pages(),
        prompt_tokens=380,
        answer_tokens=200,
        defaults=FlowDefaults(compaction_words=25),
    )
    await asked.ask("Which is fact number 3 of Befunge?")
    assert asked.stages("compact")[0]["words"] == 25


@pytest.mark.parametrize(
    ("summary", "how", "note"),
    [
        ("Nothing relevant.", None, None),
        ("", "passages", "summary_replaced"),
        ("It was written by Ben Olmstead in 1998.", "passages", "summary_replaced"),
        (LONG.replace("word", "term"), "summary", "summary_cut"),
    ],
)
async def test_bad_summaries(summary: str, how: str | None, note: str | None) -> None:
    model = Model(["Befunge"], "", summary)
    asked = Asked(model, two_long_pages(), prompt_tokens=380, answer_tokens=400)
    result = await asked.ask("Which is fact number 3 of Befunge?")
    assert [used.how for used in asked.records[0].pages[1:]] == ([how] if how else [])
    if note:
        assert asked.records[0].details[note]
    else:
        assert [(each.title, each.reason) for each in result.skipped] == [("Befunge 2", "nothing relevant")]
    assert result.budget.prompt_tokens <= 380


async def test_summaries_run_side_by_side() -> None:
    model = Model(["Befunge"], "", "The fact number 3 of Befunge is word3.")
    model.delay = 0.01
    most = 0

    def compact(prompt: str) -> str:
        nonlocal most
        most = max(most, model.running)
        return f"The fact number 3 of Befunge is {'term' if 'term3' in prompt else 'item'}3."

    model.says["compact"] = compact
    others = [LONG.replace("word", "term"), LONG.replace("word", "item")]  # copies of a page would be folded
    pages = [page("Befunge", LONG), page("Befunge 2", others[0]), page("Befunge 3", others[1])]
    asked = Asked(model, MemoryWiki(*pages), prompt_tokens=420, answer_tokens=200, min_space_tokens=30)
    result = await asked.ask("Which is fact number 3 of Befunge?")
    assert [used.title for used in asked.records[0].pages] == ["Befunge", "Befunge 2", "Befunge 3"]
    assert most == 2
    assert result.budget.prompt_tokens <= 420


async def test_pages_without_space_are_reported() -> None:
    asked = Asked(
        Model(["Befunge"], "word1"),
        two_long_pages(),
        prompt_tokens=265,
        answer_tokens=200,
        min_space_tokens=20,
    )
    result = await asked.ask("Befunge?")
    used = [each.title for each in asked.records[0].pages]
    assert used == ["Befunge"]
    assert [(each.title, each.reason) for each in result.skipped] == [
        ("Befunge 2", "no space left in the prompt")
    ]
