"""What `make run` serves: the small model that `hearth pull` gets, without a name in the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.memory.answers.notices import UNSPOKEN, UNTRANSLATED
from gateway.models.catalog import Catalog
from tests.end_to_end.server import Server
from tests.end_to_end.test_ask import events

README = Path(__file__).resolve().parent.parent.parent / "README.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, standard_model: Path) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("standard") / "data"
    place = Catalog.load().standard.path(data_dir)
    place.parent.mkdir(parents=True)
    place.symlink_to(standard_model)
    server = Server(data_dir, "")
    yield server
    assert server.stop() == 0


def test_the_readme_shows_its_first_answer(server: Server) -> None:
    """Stage by stage. Ids, timings and progress differ, and a machine may round to another word of the answer."""
    readme = README.read_text()
    block = readme[readme.index("```text\nevent: stage") :].removeprefix("```text\n").split("```")[0]
    shown = [
        (kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for kind, data in (pair.splitlines() for pair in block.strip().split("\n\n"))
    ]
    told = events(server, "Who created Befunge?")

    def stages(pairs: list[tuple[str, dict[str, Any]]]) -> list[str]:
        found = dict.fromkeys(data["stage"] for kind, data in pairs if kind == "stage")
        return [stage for stage in found if stage not in {"loading", "reading"}]

    assert stages(shown) == stages(told)
    for name in ("citations", "model", "notice"):
        assert shown[-1][1][name] == told[-1][1][name]
    for _, result in (shown[-1], told[-1]):
        assert "Chris Pressey" in result["answer"]


def test_it_converses_in_english_and_says_that_it_does_not_in_vietnamese(server: Server) -> None:
    chat = server.client.post("/v1/conversations", json={"kind": "chat"}).raise_for_status().json()["id"]

    def say(text: str) -> str:
        reply = server.client.post(f"/v1/conversations/{chat}/messages", json={"text": text})
        text = reply.raise_for_status().json()["message"]["text"]
        assert isinstance(text, str)
        return text

    first = say("Hi there!")
    assert 1 < len(first.split()) < 120
    assert "demo" not in first
    assert say("hôm nay tôi hơi buồn") == UNSPOKEN
    assert say("how do you say hello in Spanish?") == say("and in French?") == UNTRANSLATED
    assert [say(text) for text in ("what's 15% of 80?", "and 20%?")] == ["15% of 80 = 12.", "20% of 80 = 16."]
    blocks = server.client.get(f"/v1/conversations/{chat}/context").raise_for_status().json()["blocks"]
    shown = "\n".join(block["text"] for block in blocks)
    assert "Hi there!" in shown
    assert not any(told in shown for told in (UNSPOKEN, UNTRANSLATED, "of 80"))
