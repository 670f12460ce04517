"""The view of a wiki's page, in Chromium."""

from __future__ import annotations

import pytest

from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser
from tests.gateway.web.server_side import add_page
from tests.gateway.web.test_page import HOSTILE


def test_a_citation_of_a_wiki_that_is_nowhere_leads_to_its_page(browser: Browser, served: Server) -> None:
    text = f"It is {HOSTILE}.\n\n== Maker / 1 ==\nBlurbolang is a language created by Ada Quux in 2011."
    add_page(served, "Blurbolang? A/B #1", text, "folder")
    browser.open(served.url)
    browser.write("#question", "Who created Blurbolang?")
    browser.until_text("Ada Quux", ".question .text")
    browser.click(".sources li a")
    browser.until_text("created by Ada Quux", "#wiki .text")
    assert (browser.text("#wiki h2"), browser.text("#wiki h3")) == ("Blurbolang? A/B #1", "Maker / 1")
    assert browser.all("#wiki img, #wiki iframe, #wiki script, #wiki a") == []
    browser.open(f"{served.url}/#/wiki/Befunge")
    browser.until_text("Chris Pressey", "#wiki .text")
    assert browser.text("#wiki .hint a") == "https://esolangs.org/wiki/Befunge"
    browser.open(f"{served.url}/#/wiki/Nothing_here")
    browser.until_text("has no page", "#wiki .problem")


@pytest.mark.parametrize("address", ["#/settings", "#/wiki/", "#main"])
def test_an_address_without_a_view_shows_the_questions(
    browser: Browser, served: Server, address: str
) -> None:
    """It showed an empty page; `#main` is what "Skip to content" leaves behind."""
    browser.open(f"{served.url}/{address}")
    browser.one("#question")
