"""Import files that are truncated, damaged or made up: a clear refusal, or a log that keeps its promises."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.base.errors import HearthError, InvalidRequestError
from gateway.base.redact import redact_value
from gateway.cli.common.files import opened_database
from tests.gateway.cli.imports.test_transfer import OPENAI, content, fill, run
from tests.gateway.memory.test_kills import check_chain


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``lines.jsonl`` and the documents of the same conversations."""
    folder = tmp_path_factory.mktemp("exported")
    with opened_database(folder / "data" / "hearth.db") as database:
        database.write_sync(fill)
    assert run(folder / "data", "export", str(folder / "lines.jsonl")).exit_code == 0
    assert run(folder / "data", "export", str(folder / "documents"), "--documents").exit_code == 0
    return folder


def rows(exported: Path) -> list[Any]:
    return [json.loads(line) for line in (exported / "lines.jsonl").read_text().splitlines()]


def imported(raw: bytes, name: str = "file") -> bool:
    """Import a file of these bytes. True: done, and what is stored is sound. False: refused with a reason."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(raw)
        done = run(Path(folder) / "data", "import", str(file))
        if done.exception is not None:
            assert isinstance(done.exception, HearthError), repr(done.exception)
            assert done.exception.message
            return False
        database = apsw.Connection(str(Path(folder) / "data" / "hearth.db"))
        assert database.pragma("foreign_key_check") is None
        for (conversation,) in list(database.execute("SELECT id FROM conversations")):
            check_chain(database, conversation)
        database.close()
        return True


def test_the_documents_go_out_and_in(exported: Path, tmp_path: Path) -> None:
    for source in (exported / "documents", exported / "documents" / "Daily_chat.json"):
        target = tmp_path / source.name
        done = run(target, "import", str(source), "--owner", "ann")
        assert (done.exit_code, done.output) == (
            0, "7 added, 0 were there already; secrets replaced in them: 1\n",
        ), done.exception  # fmt: skip
        assert content(target) == content(exported / "data")
        assert "0 added, 7 were there" in run(target, "import", str(source)).output


def test_secrets_in_a_file_are_redacted(exported: Path, tmp_path: Path) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz123456"
    changed = rows(exported)
    changed[2]["messages"][0]["text"] = f"my key is {key}"
    changed[2]["summaries"][0]["pins"] = [key]
    file = tmp_path / "lines"
    file.write_text("\n".join(map(json.dumps, changed)))
    assert run(tmp_path / "data", "import", str(file)).exit_code == 0
    database = apsw.Connection(str(tmp_path / "data" / "hearth.db"))
    assert database.execute("SELECT redactions FROM messages WHERE id = 'm1'").get == 1
    database.close()
    assert key.encode() not in (tmp_path / "data" / "hearth.db").read_bytes()


def test_secrets_are_searched_for_once(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Any] = []

    def counting(value: Any) -> tuple[Any, int]:
        searched.append(value)
        return redact_value(value)

    monkeypatch.setattr("gateway.store.transfer.check.redact_value", counting)
    assert run(tmp_path / "data", "import", str(exported / "lines.jsonl")).exit_code == 0
    messages = [message["text"] for row in rows(exported) for message in row.get("messages", ())]
    assert len(messages) > 1
    assert sorted(each["text"] for each in searched if "speaker" in each) == sorted(messages)


Change = Callable[[list[Any]], Any]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r[2]["messages"][1].update(id="m1"), "messages.id"),
        (lambda r: r[2]["messages"][1].update(id="x" * 200), "messages.id"),
        (lambda r: r[2]["messages"][1].update(seq=1), "messages.seq"),
        (lambda r: r[2]["messages"][1].update(seq=2**70), "messages.seq"),
        (lambda r: r[2]["messages"][0].update(round=99), "messages.round"),
        (lambda r: r[2]["messages"][1].update(tokens=-5), "messages.tokens"),
        (lambda r: r[2]["messages"][1].update(created_at=1e300), "a time"),
        (lambda r: r[2]["messages"][1].update(summarized_by=None), "summarized_by"),
        (lambda r: r[2]["messages"][1].update(summarized_by=77), "summarized_by"),
        (lambda r: r[2]["messages"][1].update(answers=77), "messages.answers"),
        (lambda r: r[2]["messages"][0].update(answers=2), "messages.answers"),  # a later one
        (lambda r: r[2]["messages"][1].update(role="root"), "role"),
        (lambda r: r[2]["summaries"][0].update(last=2**40), "summaries.first"),
        (lambda r: r[3]["messages"][0].update(seq=2), "summaries.first"),  # inside a span that was inherited
        (lambda r: r[3]["messages"][0].update(seq=0), "summaries.first"),
        (lambda r: r[2]["summaries"][0].update(superseded_by=None), "overlap"),
        (lambda r: r[2]["summaries"][2].update(superseded_by=1), "later summary"),
        (lambda r: r[2]["conversation"].update(id="../../etc/passwd"), "conversation.id"),
        (lambda r: r[0].update(version=99), "version 99"),
        (lambda r: r[-1]["task"].update(parent="T-20261120-77"), "T-20261120-77"),
        (lambda r: r[-1]["task"].update(id="'; DROP TABLE tasks"), "task.id"),
        (lambda r: r.append({"type": "spell"}), "spell"),
    ],
)  # fmt: skip
def test_an_unsound_file_is_refused_by_line_and_field(
    exported: Path, tmp_path: Path, change: Change, says: str
) -> None:
    changed = rows(exported)
    change(changed)
    file = tmp_path / "lines"
    file.write_text("\n".join(map(json.dumps, changed)))
    refused = run(tmp_path / "data", "import", str(file)).exception
    assert isinstance(refused, InvalidRequestError), refused
    assert says in refused.message and ("line " in refused.message or "version" in refused.message)
    if "T-20261120-77" not in says:  # what only the database can tell is told when it is stored
        assert not (tmp_path / "data" / "hearth.db").exists(), "checked before anything is written"


CIRCLE = [{"mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}, "current_node": "a"}]


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\n\n", b"no json", b"[1, 2]", b'{"a": 1}', b'{"messages": 3}', b"[" * 200_000, b'{"a":' * 100_000,
        b'{"type":"header","format":"hearth","version":1,"exported_at":1}\n' + b"[" * 100_000,
        b"\xff\xfe\x00{", b'"\\ud800"', b"SQLite format 3\0" + bytes(200), b"\x1f\x8b" + bytes(99),
        json.dumps(CIRCLE).encode(),
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused(raw: bytes) -> None:
    assert not imported(raw)


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user", "content": "hi\0there"}, {"role": "user"}, 7, None]},
        {"messages": [{"role": "user", "content": "hi"}, {"role": [], "content": {}}]},
        {"messages": [{"role": "user", "content": [{"text": 5}, {"type": "image"}, ["x"]]}]},
        {"messages": [{"role": "user", "content": "hi", "create_time": 10**400}], "title": {"a": 1}},
        {"mapping": {"a": 1, "b": {"parent": 5, "message": {"author": "me", "content": None}}}},
        {"mapping": {}, "create_time": -1e308, "update_time": True, "current_node": ["a"]},
    ],
)  # fmt: skip
def test_odd_chats_leave_out_what_is_none(value: Any) -> None:
    assert imported(json.dumps(value).encode())


def test_one_conversation_a_line(tmp_path: Path) -> None:
    line = json.dumps(
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}
    )
    (tmp_path / "tuning.jsonl").write_text(f"{line}\n{line.replace('hi', 'hello')}\n")
    assert "2 added" in run(tmp_path / "data", "import", str(tmp_path / "tuning.jsonl")).output


_damage = st.lists(
    st.tuples(st.sampled_from(["cut", "flip", "insert", "double"]), st.floats(0, 1), st.binary(max_size=6)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("which", ["lines.jsonl", "documents/Daily_chat.json", "openai"])
@settings(max_examples=40)
@given(damage=_damage)
def test_damaged_files_are_refused_or_sound(exported: Path, which: str, damage: list) -> None:
    raw = json.dumps(OPENAI).encode() if which == "openai" else (exported / which).read_bytes()
    for kind, where, piece in damage:
        at = int(where * len(raw))
        match kind:
            case "cut":
                raw = raw[:at]
            case "flip" if at < len(raw):
                raw = raw[:at] + bytes([raw[at] ^ (1 << len(piece))]) + raw[at + 1 :]
            case "insert":
                raw = raw[:at] + piece + raw[at:]
            case "double":
                raw = raw[:at] + raw[at // 2 :]
    imported(raw, Path(which).name)


_VALUES: list[Any] = [
    None,
    -1,
    0,
    1,
    2,
    8,
    2**63,
    1e308,
    1.5,
    "",
    "m2",
    "now",
    "x" * 300,
    "\0",
    [],
    ["a"],
    {},
    True,
]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


@settings(max_examples=120)
@given(changes=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(_VALUES)), min_size=1, max_size=3))
def test_any_value_anywhere_is_refused_or_sound(exported: Path, changes: list) -> None:
    changed = rows(exported)
    for where, value in changes:
        places = _places(changed)
        container, key = places[where % len(places)]
        container[key] = deepcopy(value)  # the list of an earlier change may be put into itself
    imported("\n".join(map(json.dumps, changed)).encode())


def test_backups_say_what_is_wrong(exported: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "hearth.db").write_bytes((exported / "data" / "hearth.db").read_bytes()[:20_000])
    cases = [
        (exported / "data", tmp_path / "none" / "copy.db", "none"),
        (data, tmp_path / "copy.db", "damaged"),
    ]
    for source, target, says in cases:
        refused = run(source, "backup", str(target)).exception
        assert isinstance(refused, HearthError) and says in refused.message, refused
        assert not target.exists() and not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (json.dumps(OPENAI, indent=1).encode()[:-30], "truncated"),
        (json.dumps(OPENAI, indent=1).encode().replace(b'"title": "Trains"', b'"title": Trains'), "line 4, byte "),
        (b'{"messages": [}\n', "line 1, byte 15"),
        (b'{"messages": []}\n\n{"messages": [1\n{"messages": []}', "line 3: "),
        (b'{"messages": []}\n\n[1]', "line 3 is not a conversation"),
        (b'[{"messages": []}, 7]', "item 2 is not a conversation"),
        (b"PK\x03\x04 and so on", "conversations.json"),
    ],
)  # fmt: skip
def test_damaged_chats_are_refused_with_the_place(tmp_path: Path, raw: bytes, says: str) -> None:
    (tmp_path / "conversations.json").write_bytes(raw)
    refused = run(tmp_path / "data", "import", str(tmp_path / "conversations.json")).exception
    assert isinstance(refused, InvalidRequestError) and says in refused.message, refused


def test_what_is_not_taken_over_is_counted(tmp_path: Path) -> None:
    def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
        return {"author": {"role": role}, "content": content} | fields

    nodes: dict[str, Any] = {"root": {"parent": None, "message": None}}
    for name, parent, message in (
        ("a", "root", said("system", {"parts": ["hidden"]})),
        ("b", "a", said("user", {"content_type": "multimodal_text", "parts": [{"image": 1}, "Draw Huế"]})),
        ("c", "b", said("assistant", {"content_type": "code", "text": "draw()"}, recipient="python")),
        ("d", "c", said("tool", {"content_type": "execution_output", "text": "drawn"})),
        ("e", "d", said("assistant", {"content_type": "multimodal_text", "parts": [{"image": 1}]})),
        ("f", "e", said("assistant", {"content_type": "code", "text": "print(1)"}, recipient="all")),
        ("x", "b", said("assistant", {"parts": ["No."]})),
    ):
        nodes[name] = {"parent": parent, "message": message}
    file = tmp_path / "conversations.json"
    file.write_text("\ufeff" + json.dumps([{"id": "1", "mapping": nodes, "current_node": "f"}]))
    done = run(tmp_path / "data", "import", str(file))
    assert "1 added" in done.output and (
        "left out: 1 of branches that were not shown last, 3 of systems and tools, 1 without text"
        in done.output
    )
    assert "parts of messages without text left out: 1" in done.output
    database = apsw.Connection(str(tmp_path / "data" / "hearth.db"))
    assert [row[0] for row in database.execute("SELECT text FROM messages")] == ["Draw Huế", "print(1)"]
    database.close()


def test_chats_of_claude_are_taken_over(tmp_path: Path) -> None:
    def said(sender: str, text: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
        at = {"created_at": "2026-05-01T08:00:05.5Z", "updated_at": "2026-05-01T08:00:05.5Z"}
        return {"uuid": text, "sender": sender, "text": text, "content": list(parts)} | at | fields

    exported = {
        "uuid": "4d1c",
        "name": "A trip to Huế",
        "created_at": "2026-05-01T08:00:00Z",
        "updated_at": "2026-05-01T09:00:00+00:00",
        "account": {"uuid": "9a"},
        "chat_messages": [
            said(
                "human",
                "Look at this",
                {"type": "text", "text": "Look at this"},
                files=[{"file_name": "a.png"}],
            ),
            said(
                "assistant",
                "This block is not supported.",
                {"type": "thinking", "thinking": "A picture."},
                {"type": "text", "text": "A bridge."},
            ),
            said("human", "", attachments=[{"file_name": "b.txt", "extracted_content": ""}]),
            said(
                "human",
                "Where is it?",
                attachments=[
                    {
                        "file_name": "c.txt",
                        "extracted_content": "my key is sk-abcdefghijklmnopqrstuvwxyz123456",
                    }
                ],
            ),
        ],
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([exported]))
    done = run(tmp_path / "data", "import", str(file))
    assert "1 added, 0 were there already; secrets replaced in them: 1\n" in done.output
    assert "messages left out: 1 without text" in done.output
    assert "parts of messages without text left out: 2" in done.output
    database = apsw.Connection(str(tmp_path / "data" / "hearth.db"))
    rows = database.execute("SELECT role, text, created_at FROM messages ORDER BY seq").fetchall()
    begun = 1777622400.0  # 2026-05-01T08:00:00Z
    assert rows == [
        ("user", "Look at this", begun + 5.5),
        ("assistant", "A bridge.", begun + 5.5),
        ("user", "Where is it?\nc.txt:\nmy key is [redacted]", begun + 5.5),
    ]
    made = database.execute("SELECT title, created_at, updated_at FROM conversations").fetchall()
    assert made == [("A trip to Huế", begun, begun + 3600)]
    database.close()
    assert "0 added" in run(tmp_path / "data", "import", str(file)).output
