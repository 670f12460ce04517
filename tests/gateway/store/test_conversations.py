"""Conversations, their log, summaries and jobs on a real database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from gateway.base.errors import NotFoundError
from gateway.cli.common.files import opened_database
from gateway.store.db import Database
from gateway.store.memory.conversations import (
    Conversation,
    add_conversation,
    erase_conversation,
    forget_speaker,
    get_conversation,
    list_conversations,
    save_conversation,
)
from gateway.store.memory.facts import NewFact, list_facts, put_fact
from gateway.store.memory.jobs import (
    Job,
    LostJobError,
    add_job,
    finish_job,
    lease_job,
    next_job_at,
    open_jobs,
    put_back_job,
    release_all_jobs,
    renew_jobs,
    set_watermark,
    watermark,
)
from gateway.store.memory.messages import (
    DuplicateMessageError,
    NewMessage,
    StoredMessage,
    add_message,
    find_message,
    messages_between,
    open_messages,
    page_of_messages,
)
from gateway.store.memory.summaries import (
    NewSummary,
    StaleSummaryError,
    add_summary,
    list_summaries,
    live_summaries,
)
from gateway.store.memory.tasks import NewTask, add_task, list_tasks, save_task
from gateway.store.migrate import migrate, migrations


def make(name: str = "c1", owner: str = "ann", at: float = 100.0, **changes: Any) -> Conversation:
    fields: dict[str, Any] = {
        "id": name, "owner": owner, "kind": "chat", "policy": "ceiling", "title": "", "participants": ["Ann", "Bé"],
        "instructions": "", "model": "m", "previous": None, "created_at": at, "updated_at": at,
    }  # fmt: skip
    return Conversation(**fields | changes)


def say(
    connection: apsw.Connection, name: str, role: str = "user", conversation: str = "c1", **changes: Any
) -> StoredMessage:
    fields: dict[str, Any] = {
        "id": name, "conversation": conversation, "role": role, "speaker": "Ann", "text": f"text of {name}",
        "tokens": 5, "redactions": 0, "created_at": 101.0,
    }  # fmt: skip
    return add_message(connection, NewMessage(**fields | changes))


def digest(first: int, last: int, level: Any = "now", conversation: str = "c1") -> NewSummary:
    return NewSummary(
        conversation=conversation, level=level, first=first, last=last, from_time=1.0, to_time=2.0, text="short",
        pins=["42 apples"], tokens=3, prompt_name="p", prompt_version=1, model="m", created_at=3.0,
    )  # fmt: skip


@pytest.fixture
def talk(database: Database) -> Database:
    database.write_sync(lambda c: add_conversation(c, make()))
    return database


def test_conversations_belong_to_their_owner(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        add_conversation(c, make("c2", at=300.0))
        add_conversation(c, make("other", owner="bob", at=400.0))
        assert get_conversation(c, "c1", "ann") == make()
        assert [each.id for each in list_conversations(c, "ann", limit=9)] == ["c2", "c1"]
        assert [each.id for each in list_conversations(c, "ann", limit=9, before=(300.0, "c2"))] == ["c1"]
        for missing in ("other", "none", ""):
            with pytest.raises(NotFoundError):
                get_conversation(c, missing, "ann")
        with pytest.raises(NotFoundError):
            erase_conversation(c, "other", "ann")
        save_conversation(c, make("c2", at=300.0, archived_at=5.0))
        assert [each.id for each in list_conversations(c, "ann", limit=9)] == ["c1"]
        assert len(list_conversations(c, "ann", limit=9, archived=True)) == 2

    talk.write_sync(check)


def test_rounds_and_pages(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        said = [
            say(c, "m1"),
            say(c, "m2"),
            say(c, "m3", "assistant"),
            say(c, "m4"),
            say(c, "m5", "assistant", failed=True),
        ]
        assert [m.round for m in said] == [1, 1, 1, 2, 2]
        with pytest.raises(DuplicateMessageError):
            say(c, "m1")
        assert find_message(c, "m4", "c1") == said[3]
        assert find_message(c, "m4", "c2") is None
        assert page_of_messages(c, "c1", limit=2) == said[3:]
        assert page_of_messages(c, "c1", limit=2, before=said[3].seq) == said[1:3]
        assert messages_between(c, "c1", said[1].seq, said[3].seq) == said[1:4]
        assert [m.failed for m in page_of_messages(c, "c1", limit=9)] == [False] * 4 + [True]
        assert get_conversation(c, "c1", "ann").updated_at == 101.0

    talk.write_sync(check)


def test_summaries_form_a_chain_without_overlap(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        seqs = [say(c, f"m{n}", "user" if n % 2 else "assistant").seq for n in range(1, 11)]
        first = add_summary(c, digest(seqs[0], seqs[3]))
        assert [m.seq for m in open_messages(c, "c1", 2)] == seqs[4:]
        assert [m.seq for m in open_messages(c, "c1", 8)] == seqs[2:]
        with pytest.raises(StaleSummaryError):
            _savepoint(c, lambda: add_summary(c, digest(seqs[3], seqs[5])))
        second = add_summary(c, digest(seqs[4], seqs[7]))
        folded = add_summary(c, digest(seqs[0], seqs[7], "today"), [first, second])
        with pytest.raises(StaleSummaryError):
            _savepoint(c, lambda: add_summary(c, digest(seqs[0], seqs[9], "today"), [first]))
        add_summary(c, digest(seqs[8], seqs[8], "message"))
        assert next((s.seq, s.level) for s in live_summaries(c, "c1")) == (folded, "today")
        assert live_summaries(c, "c1")[0].pins == ["42 apples"]
        assert [m.summarized_by for m in messages_between(c, "c1", seqs[0], seqs[8])] == [first] * 4 + [
            second
        ] * 4 + [None]
        shown = list_summaries(c, "c1", limit=9)
        assert [s.superseded_by for s in reversed(shown)] == [folded, folded, None, None]
        assert [s.seq for s in list_summaries(c, "c1", limit=1, before=folded)] == [second]

    talk.write_sync(check)


def test_jobs_are_leased_once_and_survive(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        add_job(c, "compact", "c1", now=1.0)
        add_job(c, "compact", "c1", now=2.0)
        add_job(c, "facts", "c1", now=2.0)
        c.execute("UPDATE jobs SET not_before = 50 WHERE kind = 'facts'")
        assert next_job_at(c) == 0.0
        assert lease_job(c, str, now=10.0, seconds=5.0, busy=["c1"]) is None
        assert lease_job(c, lambda subject: None, now=10.0, seconds=5.0) is None
        job = _lease(c, 10.0)
        assert job is not None
        assert (job.kind, job.attempts) == ("compact", 1)
        assert lease_job(c, str, now=10.0, seconds=5.0) is None
        renew_jobs(c, [job], until=15.5)
        assert lease_job(c, str, now=15.2, seconds=5.0) is None
        # Its cause came while the first one runs, perhaps too late for it.
        add_job(c, "compact", "c1", now=11.0)
        again = _lease(c, 16.0)
        assert again is not None and again.seq == job.seq and again.attempts == 2  # its lease had run out
        renew_jobs(c, [job], until=99.0)  # by the run that lost it
        assert next_job_at(c, kinds=["compact"]) == 0.0
        assert c.execute("SELECT leased_until FROM jobs WHERE seq = ?", (job.seq,)).get == 21.0
        with pytest.raises(LostJobError):
            finish_job(c, job)
        finish_job(c, again)
        later = _lease(c, 16.0)
        assert later is not None and later.seq != job.seq
        assert release_all_jobs(c) == 1
        retried = _lease(c, 16.0)
        put_back_job(c, retried, not_before=20.0, problem="the model was gone")
        assert lease_job(c, str, now=19.0, seconds=5.0) is None
        retried = _lease(c, 21.0)
        assert (retried.problem, retried.attempts) == ("the model was gone", 3)
        put_back_job(c, retried, not_before=0.0, problem=None)
        interrupted = _lease(c, 21.0)
        assert interrupted.attempts == 3  # an interruption is no failure
        add_job(c, "compact", "c1", now=22.0)
        put_back_job(c, interrupted, not_before=0.0, problem="x")
        finish_job(c, _lease(c, 22.0))
        assert next_job_at(c) == 50.0
        assert _lease(c, 60.0).kind == "facts"

    talk.write_sync(check)


def test_of_two_jobs_left_running_one_waits_after_a_start(talk: Database) -> None:
    """The first one could not be put back, for example because the disk was full."""

    def check(c: apsw.Connection) -> None:
        for _ in range(2):
            add_job(c, "facts", "c1", now=1.0)
            _lease(c, 2.0)
        assert release_all_jobs(c) == 2
        assert [job.seq for job in open_jobs(c, "c1")] == [_lease(c, 3.0).seq]

    talk.write_sync(check)


def test_watermarks_only_rise(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        assert watermark(c, "c1", "facts") == 0
        set_watermark(c, "c1", "facts", 7)
        set_watermark(c, "c1", "facts", 5)
        assert (watermark(c, "c1", "facts"), watermark(c, "c1", "tasks")) == (7, 0)

    talk.write_sync(check)


def test_erasing_leaves_nothing(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        seq = say(c, "m1").seq
        add_summary(c, digest(seq, seq))
        add_job(c, "facts", "c1", now=1.0)
        set_watermark(c, "c1", "facts", seq)
        erase_conversation(c, "c1", "ann")
        for table in ("conversations", "messages", "summaries", "jobs", "watermarks"):
            assert c.execute(f"SELECT count(*) FROM {table}").get == 0, table

    talk.write_sync(check)


def test_messages_of_an_older_schema_keep_their_numbers(tmp_path: Path) -> None:
    """Message ids were once unique among all conversations, and replies were told by their place."""
    path = tmp_path / "hearth.db"
    old = apsw.Connection(str(path))
    old.pragma("foreign_keys", True)
    migrate(old, path, [step for step in migrations() if step.version < 10])
    old.execute(
        "INSERT INTO conversations VALUES ('c1', 'ann', 'chat', 'ceiling', '', '[]', '', '', 'm', NULL, 1, 1, NULL)"
    )
    for number, (role, failed) in enumerate(
        [("user", 0), ("assistant", 1), ("assistant", 0), ("assistant", 0), ("user", 0), ("user", 0)], 1
    ):
        old.execute(
            "INSERT INTO messages VALUES (?1, 'm' || ?1, 'c1', ?2, 'Ann', 'text', 5, ?1, ?3, NULL, 0, 101)",
            (number, role, failed),
        )
    add_summary(old, digest(1, 4))
    old.execute("DELETE FROM messages WHERE seq = 6")
    old.close()
    with opened_database(path) as database:
        after = database.read_sync(lambda c: page_of_messages(c, "c1", limit=9))
        shown = [(m.seq, m.id, m.role, m.round, m.failed, m.summarized_by, m.answers) for m in after]
        assert shown == [
            (1, "m1", "user", 1, False, 1, None),
            (2, "m2", "assistant", 2, True, 1, 1),
            (3, "m3", "assistant", 3, False, 1, 1),
            (4, "m4", "assistant", 4, False, 1, None),
            (5, "m5", "user", 5, False, None, None),
        ]
        assert database.read_sync(lambda c: get_conversation(c, "c1", "ann")).counted_by == "m"
        assert database.write_sync(lambda c: say(c, "m7")).seq == 7, "no number is given twice"
        database.write_sync(lambda c: add_conversation(c, make("c2")))
        assert database.write_sync(lambda c: say(c, "m7", conversation="c2")).id == "m7"


def test_records_of_an_older_schema_are_erased_with_the_facts_that_they_list(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    old = apsw.Connection(str(path))
    old.pragma("foreign_keys", True)
    migrate(old, path, [step for step in migrations() if step.version < 13])
    for name in ("c1", "c2"):
        old.execute(
            "INSERT INTO conversations (id, owner, kind, policy, title, participants, persona, instructions, model, "
            "created_at, updated_at) VALUES (?, 'ann', 'chat', 'ceiling', '', '[]', '', '', 'm', 1, 1)",
            (name,),
        )
    old.execute(
        "INSERT INTO facts (id, owner, scope, scope_id, key, text, quote, conversation, reason, valid_from) "
        "VALUES ('f', 'ann', 'owner', '', 'pet', ?, '', 'c1', '', 1)",
        ('Has a "zebra" named\\Zoë.',),
    )
    for text in ('What you know:\n- pet: Has a "zebra" named\\Zoë.', "Nothing."):
        old.execute(
            "INSERT INTO requests (id, kind, started_at, seconds, status, owner, text, answer, model, details, "
            "redactions, bytes, conversation) VALUES ('r', 'chat', 1, 1, 200, 'ann', ?, '', 'm', '{}', 0, 1, 'c2')",
            (text,),
        )
        generation = {"messages": msgspec.json.encode([{"role": "user", "content": text}]).decode()}
        names = ("step", "prompt_name", "prompt_version", "output", "finish_reason", "sampling")
        numbers = ("prompt_tokens", "cached_tokens", "completion_tokens")
        times = ("queue_seconds", "prefill_seconds", "decode_seconds")
        generation |= dict.fromkeys(names, "{}") | dict.fromkeys((*numbers, *times), "0")
        old.execute(
            f"INSERT INTO generations (request, seq, {', '.join(generation)}) "
            f"VALUES (last_insert_rowid(), 0, {', '.join(':' + each for each in generation)})",
            generation,
        )
    old.execute("UPDATE request_totals SET records = 2, bytes = 2")
    old.close()
    with opened_database(path) as database:
        database.write_sync(lambda c: erase_conversation(c, "c1", "ann"))
        left = database.read_sync(lambda c: c.execute("SELECT text FROM requests").fetchall())
        assert left == [("Nothing.",)]
        assert database.read_sync(lambda c: c.execute("SELECT records, bytes FROM request_totals").get) == (
            1,
            1,
        )


def _lease(connection: apsw.Connection, now: float) -> Job:
    leased = lease_job(connection, str, now=now, seconds=5.0)
    assert leased is not None
    return leased[0]


def _savepoint(connection: apsw.Connection, write: Any) -> None:
    """Take back what a failed write has done."""
    connection.execute("SAVEPOINT before")
    try:
        write()
    except BaseException:
        connection.execute("ROLLBACK TO before")
        raise


def test_forgetting_a_speaker_keeps_the_chain_of_summaries(talk: Database) -> None:
    """Summaries that ended before the speaker's first line are live again; later ones are gone."""

    def check(c: apsw.Connection) -> None:
        seqs = [say(c, f"m{n}", "user" if n % 2 else "assistant", speaker="Bo").seq for n in range(1, 7)]
        early = add_summary(c, digest(seqs[0], seqs[1]))
        secret, reply = say(c, "m7", speaker="Ann").seq, say(c, "m8", "assistant").seq
        say(c, "m9", "assistant")  # follows a reply, not her line
        late = add_summary(c, digest(seqs[2], reply))
        add_summary(c, digest(seqs[0], reply, "today"), [early, late])
        for speaker, message, key in (("Ann", secret, "a"), ("Bo", seqs[4], "b")):
            put_fact(c, fact(speaker, message, key))
        assert forget_speaker(c, make(), "Cy") == 0
        assert len(live_summaries(c, "c1")) == 1
        assert forget_speaker(c, make(), "Ann") == 2
        assert [s.seq for s in live_summaries(c, "c1")] == [early]
        left = messages_between(c, "c1", 0, 2**62)
        assert [m.id for m in left] == ["m1", "m2", "m3", "m4", "m5", "m6", "m9"]
        assert [m.summarized_by for m in left] == [early] * 2 + [None] * 5
        assert [f.key for f in list_facts(c, "ann", limit=9)] == ["b"]
        assert get_conversation(c, "c1", "ann").participants == ["Bé"]
        add_summary(c, digest(seqs[2], seqs[5]))  # no overlap with what is gone

    talk.write_sync(check)


def test_forgetting_a_speaker_takes_the_tasks_they_named_and_no_others(talk: Database) -> None:
    def check(c: apsw.Connection) -> None:
        ann, bo = (say(c, speaker, speaker=speaker).seq for speaker in ("Ann", "Bo"))
        for mine, theirs in ((ann, bo), (bo, ann)):
            new = NewTask(
                owner="ann", level="task", parent=None, archetype="user", title=f"of {mine}", day="2026-11-21",
                created_at=1.0, conversation="c1", message=mine,
            )  # fmt: skip
            save_task(c, msgspec.structs.replace(add_task(c, new), state="done", message=theirs))
        assert forget_speaker(c, make(), "Ann") == 1
        [left] = list_tasks(c, "ann", limit=9)
        assert (left.title, left.state, left.message) == (f"of {bo}", "done", None)

    talk.write_sync(check)


def fact(speaker: str, message: int, key: str) -> NewFact:
    return NewFact(
        owner="ann", scope="channel", scope_id="c1", key=key, text=f"{speaker} likes it", quote="likes it",
        conversation="c1", message=message, reason="", valid_from=1.0,
    )  # fmt: skip
