"""A question through the whole program with a real MediaWiki as its wiki."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.end_to_end.server import Server
from tests.mediawiki.server import RealMediaWiki

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, mediawiki: RealMediaWiki, demo_model: str
) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("wiki-ask") / "data"
    running = Server(data, demo_model, env={"HEARTH_WIKI__API_URL": mediawiki.api_url})
    yield running
    assert running.stop() == 0


def test_an_answer_cites_pages_of_that_wiki(server: Server, mediawiki: RealMediaWiki) -> None:
    answer = server.client.post("/ask", json={"question": "Who created Befunge?"}).json()
    assert "Chris Pressey" in answer["answer"]
    (citation,) = answer["citations"]
    assert citation["title"] == "Befunge"
    assert citation["url"].partition("#")[0] == f"{mediawiki.url}/wiki/Befunge"
    assert "Chris Pressey" in httpx2.get(citation["url"], timeout=60).text
    wiki = server.health()["wiki"]
    assert (wiki["source"], wiki["status"], wiki["address"]) == ("api", "ok", mediawiki.api_url)
    assert wiki["pages"] > 0
    assert server.health()["status"] == "ok"


def test_what_the_wiki_lacks_is_not_invented(server: Server) -> None:
    answer = server.client.post("/ask", json={"question": "What is the capital of France?"}).json()
    assert (answer["answer"], answer["citations"]) == ("The wiki does not say.", [])


def test_doctor_says_whether_the_wiki_answers(mediawiki: RealMediaWiki, tmp_path: Path) -> None:
    reports = {}
    for address in (mediawiki.api_url, mediawiki.api_url + "x"):
        done = subprocess.run(
            [sys.executable, "-m", "gateway.cli.main", "doctor", "--json", "--data-dir", str(tmp_path)],
            env=os.environ | {"HEARTH_WIKI__API_URL": address},
            capture_output=True,
            check=True,
            timeout=120,
        )
        reports[address] = json.loads(done.stdout)["wiki"]
    good, bad = reports.values()
    assert good["verdict"] == "yes"
    assert good["found"].startswith("Sample wiki (MediaWiki 1.")
    assert bad["verdict"] == "no"
    assert "wiki.api_url" in bad["found"]
