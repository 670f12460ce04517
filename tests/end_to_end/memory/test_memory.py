"""Conversations through the whole program: real server, real child, the built-in model."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from gateway.cli.common.files import opened_database
from gateway.store.keys import create_key
from tests.end_to_end.server import Server
from tests.waiting import eventually

STORY = (
    "My grandmother keeps nine goats in a village above Sapa. Every spring she walks down with two of them to the "
    "market, sells the cheese, and buys thread, salt and lamp oil. Last year the river took the bridge, so she went "
    "the long way over the pass and came home after dark with a new kettle. Where does she keep her goats?"
)
# Larger than the whole context of the built-in model, with a number that no other line has.
BOOK = " ".join(
    f"Line {n} of the ledger says that Mr. Tran paid {n * 7 + 100} dong for rice." for n in range(500)
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, demo_model: str) -> Iterator[Server]:
    alone = {"HEARTH_MEMORY__FRESH_SHARE": "0"}  # no summaries but those that the tests wait for
    server = Server(tmp_path_factory.mktemp("memory") / "data", demo_model, env=alone)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def owners(server: Server) -> Iterator[dict[str, httpx2.Client]]:
    """Two owners with a key each."""
    with opened_database(server.data_dir / "hearth.db") as database:
        keys = {
            name: database.write_sync(lambda c, name=name: create_key(c, name, "user"))[1]
            for name in ("ann", "bob")
        }
    clients = {
        name: httpx2.Client(base_url=server.url, timeout=120, headers={"Authorization": f"Bearer {key}"})
        for name, key in keys.items()
    }
    yield clients
    for client in clients.values():
        client.close()


def post(client: httpx2.Client, path: str, **body: Any) -> dict[str, Any]:
    reply = client.post(path, json=body)
    assert reply.is_success, reply.text
    return dict(reply.json())


def say(client: httpx2.Client, text: str) -> tuple[str, dict[str, Any]]:
    """A message in a new conversation; the conversation's id and the reply."""
    name = str(post(client, "/v1/conversations")["id"])
    return name, post(client, f"/v1/conversations/{name}/messages", text=text)


def test_two_owners_with_the_same_text_share_nothing(
    server: Server, owners: dict[str, httpx2.Client]
) -> None:
    ann, bob = owners["ann"], owners["bob"]
    post(ann, "/v1/facts", key="grandmother", text="Her grandmother has nine goats.")
    said: dict[str, tuple[str, dict[str, Any]]] = {"ann": say(ann, STORY), "bob": say(bob, STORY)}
    # KV: the system's turn is everybody's; what stands behind it was read again for the second owner.
    core = said["bob"][1]["budget"]["blocks"]["core"]
    turns = said["bob"][1]["budget"]["blocks"]["messages"]
    assert turns > 80
    assert said["bob"][1]["budget"]["cached_tokens"] <= core + 16
    again = say(bob, STORY)[1]["budget"]
    assert again["cached_tokens"] > core + turns // 2, "the same owner's text is found in the cache"
    # Facts.
    assert said["ann"][1]["budget"]["blocks"]["facts"] > 0
    assert "facts" not in said["bob"][1]["budget"]["blocks"]
    assert bob.get("/v1/facts").json()["data"] == []
    context = bob.get(f"/v1/conversations/{said['bob'][0]}/context").json()
    assert "nine goats" in str(context) and "Her grandmother has" not in str(context)
    # Summaries: a message that is too large gets an extract at once, and then a summary, each from its own owner's.
    for name in ("ann", "bob"):
        conversation, reply = say(owners[name], BOOK)
        [summary] = owners[name].get(f"/v1/conversations/{conversation}/summaries").json()["data"]
        assert (summary["level"], summary["first"]) == ("message", reply["accepted"]["seq"])
        calls = 1 if name == "ann" else 2
        eventually(
            lambda calls=calls: len(_first_summary_calls(server)) == calls,  # type: ignore[misc]
            "each owner's summary is made for them",
            seconds=120,
        )
    first = _first_summary_calls(server)
    assert first[1] < 64, "of the first owner's prompt only the template was found in the cache"


def _first_summary_calls(server: Server) -> list[int]:
    """Cached tokens of each owner's first call for a summary, in order."""
    database = sqlite3.connect(f"file:{server.data_dir / 'hearth.db'}?mode=ro", uri=True)
    rows = database.execute(
        "SELECT owner, cached_tokens FROM generations JOIN requests ON requests.seq = request "
        "WHERE step = 'history_summary' ORDER BY requests.seq DESC"
    ).fetchall()
    database.close()
    return list(dict(rows).values())[::-1]


def test_a_message_larger_than_the_context_is_kept_whole_and_answered(
    owners: dict[str, httpx2.Client],
) -> None:
    ann = owners["ann"]
    name, reply = say(ann, BOOK)
    budget = reply["budget"]
    assert reply["accepted"]["tokens"] > budget["limit"]
    assert budget["total"] <= budget["limit"]
    assert any(left["why"].startswith("too long: ") for left in budget["left_out"])
    log = ann.get(f"/v1/conversations/{name}/messages").json()["data"]
    assert log[0]["text"] == BOOK, "the log has it whole"
    context = ann.get(f"/v1/conversations/{name}/context").json()
    shown = next(block["text"] for block in context["blocks"] if block["name"] == "messages")
    assert "[A long message, in short]" in shown and "Line 0 of the ledger" in shown
    after = post(ann, f"/v1/conversations/{name}/messages", text="And who paid?")
    assert after["message"]["text"] and after["budget"]["total"] <= budget["limit"]


def test_the_built_in_model_compacts_a_chat_of_twenty_four_lines(owners: dict[str, httpx2.Client]) -> None:
    """What a newcomer sees first of the memory: short lines, summarized and accepted, with what they say."""
    bob = owners["bob"]
    name = str(post(bob, "/v1/conversations")["id"])
    lines = (
        "hello",
        "I live in Brno.",
        "What is your name?",
        "My cat is called Mimir.",
        "how are you",
        "thanks",
    )
    for line in (*lines, *lines):
        post(bob, f"/v1/conversations/{name}/messages", text=line)
    reply = bob.post(f"/v1/conversations/{name}/compact")
    assert reply.is_success and reply.json()["summaries"] == 1, reply.text
    [summary] = bob.get(f"/v1/conversations/{name}/summaries").json()["data"]
    kept = "\n".join([summary["text"], *summary["pins"]])
    assert summary["text"] and "Brno" in kept and "Mimir" in kept
