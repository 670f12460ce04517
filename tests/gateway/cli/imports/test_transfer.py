"""Out of one data directory and into another: nothing lost, nothing twice, foreign shapes understood."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from click.testing import CliRunner, Result

from gateway.base.errors import ConfigurationError
from gateway.cli.common.files import opened_database
from gateway.cli.main import cli
from gateway.store.db import Database
from gateway.store.memory.assistants import (
    Assistant,
    Reflection,
    add_assistant,
    add_reflection,
    get_assistant,
    list_biographies,
    list_reflections,
    reflected_summaries,
    save_assistant,
)
from gateway.store.memory.conversations import add_conversation, any_conversation, list_conversations
from gateway.store.memory.facts import list_facts, put_fact
from gateway.store.memory.messages import page_of_messages
from gateway.store.memory.summaries import add_summary, live_summaries
from gateway.store.memory.tasks import NewTask, add_task, list_tasks
from tests.gateway.memory.test_facts import fact
from tests.gateway.store.test_conversations import digest, make, say


def run(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--data-dir", str(data)], catch_exceptions=True)


def fill(connection: apsw.Connection) -> None:
    """A conversation with a folded chain, its continuation, facts in versions, and tasks."""
    wendy = Assistant(
        id="w1", owner="ann", name="Wendy", biography="A bard.", version=1, created_at=1.0, updated_at=1.0
    )
    add_assistant(connection, wendy)
    save_assistant(connection, msgspec.structs.replace(wendy, biography="A guard.", version=2))
    add_conversation(connection, make(assistant="w1", time_zone="Asia/Ho_Chi_Minh"))
    seqs: list[int] = []
    for n in range(1, 9):
        said = say(connection, f"m{n}") if n % 2 else say(connection, f"m{n}", "assistant", answers=seqs[-1])
        seqs.append(said.seq)
    first = add_summary(connection, digest(seqs[0], seqs[1]))
    second = add_summary(connection, digest(seqs[2], seqs[3]))
    today = add_summary(connection, digest(seqs[0], seqs[3], "today"), [first, second])
    reflection = Reflection(
        version=1, text="Ann has a dog.", pins=["Rex"], tokens=5, prompt_name="reflection", prompt_version=1, model="m",
        created_at=3.0,
    )  # fmt: skip
    add_reflection(connection, "w1", reflection, [today])
    add_conversation(connection, make("c2", previous="c1"))
    add_summary(connection, digest(seqs[0], seqs[7], "conversation", "c2"))
    say(connection, "n1", conversation="c2", text="password=hunter2hunter2")
    put_fact(connection, fact("Lives in Huế.", conversation="c1", message=seqs[0]))
    put_fact(connection, fact("Lives in Hanoi.", at=2.0))
    task = add_task(connection, new_task("Pack", "task"))
    add_task(
        connection, new_task("box", "checklist", parent=task.id, tool={"name": "t", "arguments": {"a": 1}})
    )


def new_task(title: str, level: Any, **fields: Any) -> NewTask:
    return NewTask(
        owner="ann", level=level, archetype="hybrid", title=title, day="2026-11-20", created_at=5.0,
        **{"parent": None} | fields,
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with opened_database(tmp_path / "one" / "hearth.db") as database:
        database.write_sync(fill)
    return tmp_path / "one"


def content(data: Path) -> dict[str, Any]:
    """What a data directory has, without the numbers that differ from database to database."""
    with opened_database(data / "hearth.db") as database:
        return database.read_sync(_content)


def _content(c: apsw.Connection) -> dict[str, Any]:
    messages = page_of_messages(c, "c1", limit=99)
    ids = {message.seq: message.id for message in messages} | {None: None}
    wendy = get_assistant(c, "Wendy", "ann")
    reflected = reflected_summaries(c, any_conversation(c, "c1"))
    return {
        "assistants": (
            wendy,
            list_biographies(c, "w1", limit=9),
            list_reflections(c, "w1", limit=9),
            [each.level for each in live_summaries(c, "c1") if each.seq in reflected],
        ),
        "conversations": [
            (x.id, x.previous, x.participants, x.assistant, x.time_zone)
            for x in list_conversations(c, "ann", limit=9)
        ],
        "messages": [(m.id, m.text, m.round, m.summarized_by is None, ids[m.answers]) for m in messages],
        "live": [(s.level, s.text, s.pins) for s in live_summaries(c, "c1")],
        "facts": [(f.id, f.text, f.ended_at) for f in list_facts(c, "ann", limit=9, ended=True)],
        "tasks": [(t.id, t.parent, t.tool) for t in list_tasks(c, "ann", limit=9)],
    }


def test_export_and_import_lose_nothing(source: Path, tmp_path: Path) -> None:
    file, target = tmp_path / "all.jsonl", tmp_path / "two"
    assert run(source, "export", str(file)).exit_code == 0
    refused = run(source, "export", str(file))
    assert isinstance(refused.exception, ConfigurationError), "a file that is there is not replaced"
    done = run(target, "import", str(file))
    assert done.exit_code == 0, done.output
    assert "secrets replaced in them: 1" in done.output
    assert content(target) == content(source)
    again = run(target, "import", str(file))
    assert again.exit_code == 0 and "0 added" in again.output
    assert content(target) == content(source)


def test_a_name_that_is_taken_is_told(source: Path, tmp_path: Path) -> None:
    file, target = tmp_path / "all.jsonl", tmp_path / "two"
    run(source, "export", str(file))
    with opened_database(target / "hearth.db") as database:
        other = Assistant(
            id="x", owner="ann", name="Wendy", biography="", version=1, created_at=1.0, updated_at=1.0
        )
        database.write_sync(lambda c: add_assistant(c, other))
    done = run(target, "import", str(file))
    assert done.exit_code == 1 and "another assistant named `Wendy`" in str(done.exception or done.output)


def test_a_damaged_export_says_where(source: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    run(source, "export", str(file))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:-40], *lines[2:]]))
    done = run(tmp_path / "two", "import", str(file))
    assert done.exit_code == 1 and "line 2" in str(done.exception or done.output)


def test_the_documents_shapes(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    assert run(source, "export", str(folder), "--documents").exit_code == 0
    chat = json.loads((folder / "Daily_chat.json").read_text())
    assert [line["id"] for day in chat.values() for line in day][:2] == ["m1", "m2"]
    summaries = json.loads((folder / "Daily_summary.json").read_text())
    assert {"from", "to", "messages", "level", "prompt"} <= set(summaries[0])
    assert summaries[2]["messages"] == ["m1", "m2", "m3", "m4"] and summaries[2]["live"]
    registry = json.loads((folder / "root.json").read_text())
    assert registry["version"] == "1.0" and [each["id"] for each in registry["projects"]] == ["c1", "c2"]
    assert {"id", "name", "path", "lastUsed", "stats", "indexing"} <= set(registry["projects"][0])
    session = folder / registry["projects"][0]["path"]
    assert (session / "current_summary.md").read_text().startswith("# ")
    log = json.loads((session / "chat_log.json").read_text())
    assert [line.get("answers") for line in log[:4]] == [None, "m1", None, "m3"]
    assert json.loads((session / "active_tasks.json").read_text()) == []
    titles = [each["row"]["task"]["title"] for each in json.loads((folder / "active_tasks.json").read_text())]
    assert titles == ["Pack", "box"]


OPENAI = [
    {
        "id": "conv-1",
        "title": "Trains",
        "create_time": 100.5,
        "mapping": {
            "root": {"parent": None, "message": None},
            "a": {
                "parent": "root",
                "message": {"author": {"role": "system"}, "content": {"parts": ["hidden"]}},
            },
            "b": {
                "parent": "a",
                "message": {"author": {"role": "user"}, "content": {"parts": ["When?", {"x": 1}]}},
            },
            "old": {
                "parent": "b",
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["Never."]}},
            },
            "new": {
                "parent": "b",
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["At 9."]}},
            },
        },
    }
]


PARTS = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
]


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        (OPENAI, ["When?", "At 9."]),
        ({"messages": PARTS}, ["Hi", "Hello"]),
        ([{"role": "user", "content": "sk-abcdefghijklmnopqrstuvwxyz123456"}], ["[redacted]"]),
    ],
)  # fmt: skip
def test_other_chats_are_understood(tmp_path: Path, document: Any, texts: list[str]) -> None:
    file, data = tmp_path / "chats.json", tmp_path / "data"
    file.write_text(json.dumps(document))
    assert run(data, "import", str(file)).exit_code == 0
    assert "0 added, 1 were" in run(data, "import", str(file)).output
    with opened_database(data / "hearth.db") as database:
        [name] = [c.id for c in database.read_sync(lambda c: list_conversations(c, "local", limit=9))]
        lines = database.read_sync(lambda c: page_of_messages(c, name, limit=9))
    assert [line.text for line in lines] == texts
    assert all(line.tokens == -1 for line in lines), "counted when they are first used"


def test_an_unknown_owner_is_not_exported_as_nothing(source: Path, tmp_path: Path) -> None:
    assert run(source, "export", str(tmp_path / "ann"), "--owner", "ann").exit_code == 0
    assert run(source, "export", str(tmp_path / "local"), "--owner", "local").exit_code == 0
    token = run(source, "key", "create", "carol", "--json")
    owner = json.loads(token.stdout)["owner"]
    assert run(source, "export", str(tmp_path / "carol"), "--owner", owner).exit_code == 0
    for arguments in (("x", "--owner"), ("folder", "--documents", "--owner")):
        unknown = run(source, "export", str(tmp_path / arguments[0]), *arguments[1:], "nobody")
        assert "there is no owner `nobody`" in str(unknown.exception)
        by_name = run(source, "export", str(tmp_path / arguments[0]), *arguments[1:], "carol")
        assert f"belongs to {owner}" in str(by_name.exception)
        assert not (tmp_path / arguments[0]).exists()


@pytest.mark.parametrize("form", ["messages", "documents"])
def test_imported_chats_get_the_configured_policy(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTH_MEMORY__POLICY", "window")
    line = {"conversation": "c", "id": "m", "role": "user", "text": "Hi", "time": "2026-11-20T10:00:00Z"}
    (tmp_path / "messages").write_text(json.dumps({"messages": PARTS}))
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "Daily_chat.json").write_text(json.dumps({"2026-11-20": [line]}))
    assert run(tmp_path / "data", "import", str(tmp_path / form)).exit_code == 0
    connection = apsw.Connection(str(tmp_path / "data" / "hearth.db"))
    assert connection.execute("SELECT policy FROM conversations").get == "window"
    connection.close()


@pytest.mark.parametrize(
    "text", ["", "no json", "[1, 2]", '{"a": 1}', '{"messages": 3}', '{"mapping": {"a": 1}}']
)
def test_what_is_no_chat_is_refused_or_empty(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    assert run(tmp_path / "data", "import", str(file)).exit_code in (0, 1)


def test_backup_while_somebody_writes(source: Path, tmp_path: Path) -> None:
    database = Database(source / "hearth.db")
    database.open()
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            database.write_sync(lambda c, n=number: say(c, f"w{n}"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = run(source, "backup", str(tmp_path / "copy.db"))
    finally:
        stop.set()
        writer.join()
        database.close()
    assert done.exit_code == 0, done.output
    copy = apsw.Connection(str(tmp_path / "copy.db"))
    assert copy.pragma("integrity_check") == "ok"
    assert copy.execute("SELECT count(*) FROM messages").get >= 9
    copy.close()
    assert isinstance(run(source, "backup", str(tmp_path / "copy.db")).exception, ConfigurationError)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_backup_is_put_back_in_the_place_of_the_database(source: Path, tmp_path: Path) -> None:
    before = content(source)
    assert run(source, "backup", str(tmp_path / "copy.db")).exit_code == 0
    with opened_database(source / "hearth.db") as database:
        database.write_sync(lambda c: say(c, "later"))
    assert content(source) != before
    for file in source.glob("hearth.db*"):
        file.unlink()
    (tmp_path / "copy.db").rename(source / "hearth.db")
    assert content(source) == before
    with opened_database(source / "hearth.db") as database:
        database.write_sync(lambda c: say(c, "goes on"))
