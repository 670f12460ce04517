"""What may become a fact, and what becomes of it."""

from __future__ import annotations

from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.memory.learning.facts import MAX_OPERATIONS, Operation, accept
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation, erase_conversation
from gateway.store.memory.facts import (
    NewFact,
    end_fact,
    facts_in_scope,
    get_fact,
    list_facts,
    put_fact,
    search_facts,
    undo_fact,
)
from tests.gateway.memory.test_compose import line
from tests.gateway.store.test_conversations import make, say

TALK = [
    line(1, text="I live in  Huế and\nI hate arrow functions."),
    line(2, "assistant", "You own a red bicycle, I remember."),
    line(3, text="broken", failed=True),
]


def op(quote: str, op: Any = "add", key: str = "home_city", text: str = "Lives in Huế.") -> Operation:
    return Operation(op, key, text, quote, "said so")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (op("i live in Huế"), 1),
        (op("“I live in Huế”"), 1),
        (op("red bicycle"), None),  # only the assistant said it
        (op("broken"), None),
        (op(""), None),
        (op("I live in Đà Nẵng"), None),
        (op("I live", text="  "), None),
        (op("I live", "delete"), None),
        (op("I live in Huế", "delete", key="city"), None),  # nothing is taken back
        (op("I hate arrow functions", "delete", key="preference: arrow_functions"), 1),
    ],
)
def test_a_fact_needs_a_users_words(operation: Operation, message: int | None) -> None:
    accepted = accept([operation], TALK, ["city", "preference: arrow_functions"])
    assert [seq for _, seq in accepted] == ([] if message is None else [message])


def test_a_model_adds_no_second_key_for_a_relation_with_one_value() -> None:
    [(accepted, _)] = accept([op("I live in Huế", key="city")], TALK, [])
    assert accepted.key == "home_city"


@given(st.lists(st.text(max_size=30), max_size=20))
def test_accepted_quotes_are_always_in_user_text(quotes: list[str]) -> None:
    said = " ".join(TALK[0].text.split()).casefold()
    accepted = accept([op(quote, key=f"key_{n}") for n, quote in enumerate(quotes)], TALK, [])
    assert len(accepted) <= MAX_OPERATIONS
    for operation, _ in accepted:
        assert " ".join(operation.quote.split()).strip("\"'“”").casefold().strip() in said


def fact(text: str, key: str = "home_city", owner: str = "ann", at: float = 1.0, **changes: Any) -> NewFact:
    fields: dict[str, Any] = {
        "owner": owner, "scope": "owner", "scope_id": "", "key": key, "text": text, "quote": "q",
        "conversation": None, "message": None, "reason": "r", "valid_from": at,
    }  # fmt: skip
    return NewFact(**fields | changes)


def test_versions_supersede_and_undo_goes_back(database: Database) -> None:
    def check(c: apsw.Connection) -> None:
        first = put_fact(c, fact("Lives in Huế."))
        assert first is not None
        assert put_fact(c, fact("lives in  huế.")) is None
        second = put_fact(c, fact("Lives in Hanoi.", at=2.0))
        assert second is not None and second.id == first.id
        assert [f.text for f in list_facts(c, "ann", limit=9)] == ["Lives in Hanoi."]
        assert [f.superseded_by for f in list_facts(c, "ann", limit=9, ended=True)] == [None, second.seq]
        end_fact(c, first.id, "ann", now=3.0, reason="no more")
        assert list_facts(c, "ann", limit=9) == []
        restored = undo_fact(c, first.id, "ann")
        assert restored is not None and restored.text == "Lives in Hanoi."
        again = undo_fact(c, first.id, "ann")
        assert again is not None and again.text == "Lives in Huế." and again.superseded_by is None
        assert undo_fact(c, first.id, "ann") is None
        with pytest.raises(NotFoundError):
            get_fact(c, first.id, "ann")

    database.write_sync(check)


def test_what_was_said_earlier_does_not_supersede(database: Database) -> None:
    """A model reads messages later than code does."""

    def check(c: apsw.Connection) -> None:
        add_conversation(c, make())
        early, late = say(c, "m1").seq, say(c, "m2").seq
        assert put_fact(c, fact("Lives in Trento.", conversation="c1", message=late)) is not None
        assert put_fact(c, fact("Lives in Turin.", conversation="c1", message=early)) is None
        assert put_fact(c, fact("Lives in Bari.")) is not None, "nobody's message: entered by hand"

    database.write_sync(check)


def test_undo_does_not_push_another_fact_aside(database: Database) -> None:
    def check(c: apsw.Connection) -> None:
        first = put_fact(c, fact("Lives in Huế."))
        assert first is not None
        end_fact(c, first.id, "ann", now=2.0, reason="")
        put_fact(c, fact("Lives in Hanoi.", at=3.0))
        with pytest.raises(InvalidRequestError, match="home_city"):
            undo_fact(c, first.id, "ann")

    database.write_sync(check)


def test_owners_and_scopes_never_mix(database: Database) -> None:
    def check(c: apsw.Connection) -> None:
        for owner in ("ann", "bob"):
            put_fact(c, fact(f"The bicycle of {owner} is red.", key="bicycle", owner=owner))
        put_fact(c, fact("The channel meets on Friday.", key="meeting", scope="channel", scope_id="c9"))
        assert [f.owner for f in search_facts(c, "ann", [("owner", "")], "whose bicycle is red?", 9)] == [
            "ann"
        ]
        assert search_facts(c, "bob", [("owner", ""), ("channel", "c9")], "friday", 9) == []
        assert len(facts_in_scope(c, "ann", [("owner", ""), ("channel", "c9")], 9)) == 2
        assert search_facts(c, "ann", [("owner", "")], "\"' OR * NEAR", 9) == []
        assert search_facts(c, "ann", [("owner", "")], "", 9) == []
        found = facts_in_scope(c, "ann", [("owner", "")], 9)[0]
        with pytest.raises(NotFoundError):
            get_fact(c, found.id, "bob")

    database.write_sync(check)


def test_facts_are_erased_with_their_conversation(database: Database) -> None:
    def check(c: apsw.Connection) -> None:
        add_conversation(c, make())
        seq = say(c, "m1").seq
        put_fact(c, fact("Lives in Huế.", conversation="c1", message=seq))
        erase_conversation(c, "c1", "ann")
        assert list_facts(c, "ann", limit=9, ended=True) == []
        assert search_facts(c, "ann", [("owner", "")], "Huế", 9) == []

    database.write_sync(check)
