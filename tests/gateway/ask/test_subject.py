"""What the prompt for search terms says the wiki is about."""

from __future__ import annotations

import pytest

from tests.gateway.ask.helpers import BEFUNGE, Asked, MemoryWiki, Model, page


@pytest.mark.parametrize(
    ("setting", "name", "subject"),
    [
        ("", "Mill wiki", "Mill wiki"),
        ("water wheels", "Mill wiki", "water wheels"),
        ("", "", "various subjects"),
    ],
)
async def test_search_terms_are_for_the_wiki_that_is_asked(setting: str, name: str, subject: str) -> None:
    model = Model(terms=["Befunge"], answer="Chris Pressey created Befunge. [1]")
    wiki = MemoryWiki(page("Befunge", *BEFUNGE))
    wiki.name = name
    await Asked(model, wiki, subject=setting).ask("Who made Befunge?")
    (prompt,) = model.prompts("terms")
    assert f"in a wiki about {subject}." in prompt
