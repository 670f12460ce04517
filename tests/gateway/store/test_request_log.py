from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.store.db import Database
from gateway.store.request_log import (
    GenerationRecord,
    Kind,
    PageRecord,
    RequestRecord,
    add_record,
    get_record,
    list_records,
)


def record(request_id: str, *, kind: Kind = "ask", text: str = "why?", generations: int = 1) -> RequestRecord:
    return RequestRecord(
        id=request_id,
        kind=kind,
        started_at=1000.5,
        seconds=2.25,
        status=200,
        text=text,
        answer="because",
        owner="key-1",
        model="demo",
        details={"budget": {"prompt_tokens": 12}, "skipped": []},
        generations=[
            GenerationRecord(
                step="terms",
                messages=[{"role": "user", "content": "über \0 \U0001f525"}],
                output='["a"]',
                prompt_name="search_terms",
                prompt_version="3",
                prompt_tokens=10,
                cached_tokens=4,
                completion_tokens=3,
                decode_seconds=0.5,
                seed=2**32 - 2,
                finish_reason="stop",
                sampling={"temperature": 0.0},
            )
        ]
        * generations,
        pages=[PageRecord(title="Befunge", revision=7, term="befunge", how="sections", tokens=99)],
    )


def add(database: Database, item: RequestRecord, *, count: int = 1000, size: int = 10**9) -> int:
    return database.write_sync(lambda c: add_record(c, item, max_records=count, max_record_bytes=size))


def ids(database: Database) -> list[str]:
    return [row.id for row in database.read_sync(lambda c: list_records(c, 1000))]


def test_a_record_comes_back_whole(database: Database) -> None:
    stored = record("req-1", generations=3)
    add(database, stored)
    assert database.read_sync(lambda c: get_record(c, "req-1")) == stored


def test_the_short_form_counts_tokens_and_pages_backwards(database: Database) -> None:
    for number in range(5):
        add(database, record(f"r{number}", kind="chat" if number % 2 else "ask", generations=number))
    newest = database.read_sync(lambda c: list_records(c, 2))
    assert [row.id for row in newest] == ["r4", "r3"]
    assert (newest[0].prompt_tokens, newest[0].cached_tokens, newest[0].completion_tokens) == (40, 16, 12)
    older = database.read_sync(lambda c: list_records(c, 9, before=newest[-1].seq))
    assert [row.id for row in older] == ["r2", "r1", "r0"]
    assert older[-1].prompt_tokens == 0
    assert [row.id for row in database.read_sync(lambda c: list_records(c, 9, kind="chat"))] == ["r3", "r1"]


def test_work_for_conversations_has_kinds_of_its_own(database: Database) -> None:
    kinds: tuple[Kind, ...] = ("generate", "summary", "facts", "summary", "ask")
    for number, kind in enumerate(kinds):
        add(database, record(f"r{number}", kind=kind))

    def listed(kind: Kind | None) -> list[str]:
        return [f"{row.id} {row.kind}" for row in database.read_sync(lambda c: list_records(c, 9, kind=kind))]

    assert listed(None) == ["r4 ask", "r3 summary", "r2 facts", "r1 summary", "r0 generate"]
    assert listed("summary") == ["r3 summary", "r1 summary"]
    assert (listed("generate"), listed("tasks")) == (["r0 generate"], [])
    assert database.read_sync(lambda c: get_record(c, "r2")) == record("r2", kind="facts")


def test_a_unique_beginning_of_an_id_is_enough(database: Database) -> None:
    for request_id in ("abc1", "abd2", "b%_"):
        add(database, record(request_id))
    assert database.read_sync(lambda c: get_record(c, "abc")).id == "abc1"
    assert database.read_sync(lambda c: get_record(c, "b%")).id == "b%_"
    with pytest.raises(InvalidRequestError, match="abc1, abd2"):
        database.read_sync(lambda c: get_record(c, "ab"))
    for missing in ("x", "", "%", "abc12"):
        with pytest.raises(NotFoundError):
            database.read_sync(lambda c, missing=missing: get_record(c, missing))


def test_a_repeated_id_gives_the_newest_and_an_exact_one_beats_a_beginning(database: Database) -> None:
    for request_id, text in (("ab", "first"), ("ab", "second"), ("abc", "third")):
        add(database, record(request_id, text=text))
    assert database.read_sync(lambda c: get_record(c, "ab")).text == "second"


def test_the_oldest_go_when_there_are_too_many(database: Database) -> None:
    for number in range(10):
        add(database, record(f"r{number}"), count=3)
    assert ids(database) == ["r9", "r8", "r7"]
    orphans = "SELECT (SELECT count(*) FROM generations) + (SELECT count(*) FROM request_pages)"
    assert database.read_sync(lambda c: c.execute(orphans).get) == 6


def test_the_oldest_go_when_they_take_too_many_bytes(database: Database) -> None:
    for number in range(10):
        add(database, record(f"r{number}", text="x" * 10_000), size=35_000)
    assert ids(database) == ["r9", "r8", "r7"]
    add(database, record("huge", text="x" * 1_000_000), size=35_000)
    assert ids(database) == ["huge"], "the newest record is kept even alone over the limit"
    add(database, record("next"), size=35_000)
    assert ids(database) == ["next"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 6), st.integers(500, 20_000)), max_size=12))
def test_the_running_totals_are_the_sums(database: Database, steps: list[tuple[int, int, int]]) -> None:
    for length, count, size in steps:
        add(database, record("r", text="x" * length), count=count, size=size)
        totals = database.read_sync(lambda c: c.execute("SELECT records, bytes FROM request_totals").get)
        sums = database.read_sync(
            lambda c: c.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM requests").get
        )
        assert totals == sums
        assert totals[0] == 1 or (totals[0] <= count and totals[1] <= size)


def test_secrets_are_redacted_everywhere(database: Database) -> None:
    secret = "sk-" + "a1B2" * 8
    item = RequestRecord(
        id="r",
        kind="chat",
        started_at=0,
        seconds=0,
        status=200,
        text=f"my key is {secret}",
        answer=f"keep {secret} safe",
        details={"nested": [{"deep": secret}]},
        generations=[
            GenerationRecord(
                step="answer", messages=[{"role": "user", "content": [{"text": secret}]}], output=secret
            )
        ],
    )
    add(database, item)
    stored = database.read_sync(lambda c: get_record(c, "r"))
    assert stored.redactions == 5
    assert stored.text == "my key is [redacted]"
    database.close()
    assert secret.encode() not in database.path.read_bytes()
