"""The code view in Chromium: graph, list, filter, search, code and callers."""

from __future__ import annotations

import hashlib

import pytest
from click.testing import CliRunner

from gateway.base.resources import web_page
from gateway.cli.main import cli
from tests.end_to_end.server import Server
from tests.gateway.api.conftest import SHOP
from tests.gateway.web.browser import Browser
from tests.waiting import eventually
from tests.writing import write_files

# The checksum of `dist/cytoscape.esm.min.mjs` 3.34.4.
CYTOSCAPE = "0d7e373a706f0f01d6fb7a6ccf04988c01307cee1c2f9bcc7b068e9f6b431e3f"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["context", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def project(served: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = write_files(tmp_path_factory.mktemp("graph") / "shop", SHOP)
    run("add", str(folder), "--data-dir", str(served.data_dir))
    return "shop"


def test_the_vendored_file_is_the_published_one() -> None:
    assert hashlib.sha256((web_page() / "cytoscape.js").read_bytes()).hexdigest() == CYTOSCAPE
    assert "Permission is hereby granted" in (web_page() / "cytoscape-licence.txt").read_text()


def test_a_name_shows_its_neighbours_its_code_and_its_callers(
    browser: Browser, served: Server, project: str
) -> None:
    command = ["visualize", "Auth.login", "--project", project, "--no-open", "--url", served.url]
    address = run(*command).strip()
    assert address == f"{served.url}/#/code/shop/Auth.login"
    browser.open(address)
    browser.until_text("3 shown.", "#graph-count")
    assert {row.text.split()[0] for row in browser.all("#graph-list li")} == {
        "auth.Auth.login",
        "auth.check",
        "app.main",
    }
    assert "return check(user)" in browser.until_text("Called by (1)", "#graph-code")
    eventually(lambda: browser.all("#graph-drawing canvas"), "nothing is drawn")
    browser.write("#graph-filter", "check", enter=False)
    eventually(
        lambda: [row.is_displayed() for row in browser.all("#graph-list li")].count(True) == 1, "filter"
    )
    browser.click("#graph-list li:not([hidden]) a")
    browser.until_text("Whether the user may.", "#graph-code")
    browser.narrow(360)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_levels_an_overview_and_words(browser: Browser, served: Server, project: str) -> None:
    browser.open(f"{served.url}/#/code/{project}")
    browser.until_text("4 shown.", "#graph-count")
    browser.run(
        "const level = document.querySelector('#graph-level'); level.value = 'file';"
        "level.dispatchEvent(new Event('change'))"
    )
    browser.until_text("2 shown.", "#graph-count")
    assert "file · auth.py" in browser.text("#graph-list")
    browser.write("#graph-name", "whether user")
    browser.until_text("Nothing is called “whether user”", "#graph-problems")
    browser.click("#graph-problems a")
    browser.until_text("Whether the user may.", "#graph-code")


def test_a_conversation_is_bound_to_a_project_and_freed(
    browser: Browser, served: Server, project: str
) -> None:
    name = served.client.post("/v1/conversations", json={"title": "Code"}).json()["id"]
    known = served.client.get(f"/v1/projects/{project}").json()["id"]
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("Code", "#talk-title")

    def choose(value: str, bound: str | None) -> None:
        browser.click("#settings-button")
        eventually(lambda: browser.all("#settings-dialog[open]"), "the settings do not open")
        browser.run(f"document.getElementById('settings-project').value = '{value}'")
        browser.click("#settings-dialog button[value=yes]")
        shown = f"/v1/conversations/{name}"
        eventually(lambda: served.client.get(shown).json()["project"] == bound, "the project is the same")

    choose(known, known)
    choose("", None)
