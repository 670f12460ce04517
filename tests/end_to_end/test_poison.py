"""Sixty poisoned pages, imported into a real server, and a question about each for the built-in model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.server import Server
from tests.gateway.ask.poison import faults, poisoned
from tests.gateway.wiki.dumps import export
from tests.gateway.wiki.dumps.export import page as exported

PAGES = 60  # of the two hundred that tests/gateway/ask/test_poison.py asks about in process
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def as_wikitext(number: int) -> str:
    """The page as somebody would have saved it; every second one with its worst parts in <nowiki>."""
    page = poisoned(number)
    text = "\n\n".join(
        f"== {each.heading} ==\n{each.text}" if each.heading else each.text for each in page.sections
    )
    if number % 2:
        text = re.sub(r"(<[^<>\n]*>|\[[^\n]*\])", r"<nowiki>\1</nowiki>", text)
    return exported(f"Zor{number}ble", _NOT_IN_XML.sub("", text), number + 1)


@pytest.mark.soak
def test_no_poison_in_any_reply(tmp_path: Path, demo_model: str) -> None:
    dump = tmp_path / "poison.xml"
    dump.write_bytes(export.export(*(as_wikitext(number) for number in range(PAGES))))
    command = [
        sys.executable,
        "-m",
        "gateway.cli.main",
        "import-wiki",
        str(dump),
        "--data-dir",
        str(tmp_path / "data"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    server = Server(tmp_path / "data", demo_model)
    try:
        answered = sum(_asked(server, number) for number in range(PAGES))
    finally:
        server.stop()
    assert answered > PAGES // 2, "most questions have an answer in spite of the poison"


def _asked(server: Server, number: int) -> bool:
    """Whether there was an answer with a source; as events, because these are what clients show first."""
    question = {"question": f"Who created Zor{number}ble?"}
    reply = server.client.post(
        "/ask", json=question, headers={"Accept": ("application/json", "text/plain")[number % 2]}
    )
    assert reply.status_code == 200, reply.text
    if number % 2:
        lines = reply.text.split("\n")
        places = [line.rpartition(": ")[::2] for line in lines if re.match(r"\[\d+\] .*: https?://", line)]
        addresses = [place[1] for place in places]
        answer = [line for line in lines if not line.endswith(tuple(addresses) or "\n")]
        shown = "\n".join([*answer, *(place[0] for place in places)])
    else:
        result = reply.json()
        addresses = [citation["url"] for citation in result["citations"]]
        shown = "\n".join([result["answer"], *(c["title"] + c["section"] for c in result["citations"])])
    own = f"https://wiki.test/wiki/Zor{number}ble"
    assert faults(shown, own) == [], (number, reply.text)
    assert all(re.fullmatch(r"https://wiki\.test/wiki/[!-~]+", address) for address in addresses), reply.text
    return bool(addresses)
