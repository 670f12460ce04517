"""KV sequences on disk: a host that comes back goes on where the last one was, and no file can hurt it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.protocol.parts import owner_digest
from model_host.snapshots.folder import SnapshotFolder
from model_host.snapshots.snapshot_file import Snapshot, file_name, read_content, read_header, write_file
from model_host.snapshots.writer import SnapshotWriter
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess
from tests.waiting import eventually

# The tiny model's window has 256 tokens; this is more than four of them.
LONG = " ".join(f"word{i} in a long prompt about grids." for i in range(150))
NEXT = "And what came next?"
NOISE = random.Random(1).randbytes(5000)  # which no compression makes smaller


def flags(folder: Path, *, after: float = 3600.0, limit: int = 1 << 30) -> list[str]:
    return ["--snapshots", str(folder), "--snapshot-after", str(after), "--snapshot-bytes", str(limit)]


def ask(host: HostProcess, name: str, messages: list[dict[str, Any]], **fields: Any) -> str:
    host.generate(name, messages=messages, ignore_eos=True, **({"max_tokens": 24, "owner": "o"} | fields))
    return host.text(name)


def turn(host: HostProcess, name: str, history: list[dict[str, Any]], text: str, **fields: Any) -> str:
    """One more exchange of a conversation, kept in ``history``."""
    history.append({"role": "user", "content": text})
    reply = ask(host, name, history, **fields)
    history.append({"role": "assistant", "content": reply})
    return reply


OPENING_MODEL = r"""
import sys; sys.path.insert(0, "models")
import pathlib, random_gemma as g
plain = g.CHATS["turns"].template
text = plain.replace(r"{{ '<start_of_turn>model\n' }}", r"{{ '<start_of_turn>model\nhm, hm, hm: ' }}")
assert text != plain
g.Chat.template = property(lambda self: text)
g.write(pathlib.Path(sys.argv[1]), shape="tiny")
"""


def until_saved(folder: Path, count: int) -> None:
    eventually(lambda: len(list(folder.glob("*/*.kv"))) >= count, "nothing is saved")


# --------------------------------------------------------------------------- through a real host


def test_a_conversation_goes_on_after_a_restart_past_the_window(
    start_host: StartHost, tmp_path: Path
) -> None:
    whole: list[dict[str, Any]] = []
    stays = start_host("--context", "4096")
    turn(stays, "one", whole, LONG)
    expected = turn(stays, "two", whole, NEXT)

    first: list[dict[str, Any]] = []
    goes = start_host("--context", "4096", *flags(tmp_path))
    turn(goes, "one", first, LONG)
    assert first == whole[:2]
    assert goes.stop() == 0
    comes = start_host("--context", "4096", *flags(tmp_path))
    assert turn(comes, "two", first, NEXT) == expected
    end = comes.end("two")
    assert end["prompt_tokens"] > 4 * 256
    # At most the reply is missing, if it was spelt in another way.
    assert end["cached_tokens"] >= stays.end("two")["cached_tokens"] - 24
    comes.send(op="stats", id="s")
    assert comes.end("s")["snapshots_restored"] == 1


def test_an_opening_that_is_not_repeated_is_left_out(start_host: StartHost, tmp_path: Path) -> None:
    """As Gemma 4 does it: the prompt ends with an empty thought, and past replies have none."""
    model = tmp_path / "opening.gguf"
    script = tmp_path / "make.py"
    script.write_text(OPENING_MODEL)
    subprocess.run([sys.executable, str(script), str(model)], check=True, cwd=ROOT)
    history: list[dict[str, Any]] = []
    host = start_host(*flags(tmp_path / "kv"), model=model)
    turn(host, "one", history, LONG[:3000])
    assert host.stop() == 0
    again = start_host(*flags(tmp_path / "kv"), model=model)
    turn(again, "two", history, NEXT)
    assert again.end("two")["cached_tokens"] > 300


def test_an_idle_host_saves_before_it_is_killed(start_host: StartHost, tmp_path: Path) -> None:
    history: list[dict[str, Any]] = []
    host = start_host(*flags(tmp_path, after=0.0))
    turn(host, "one", history, LONG[:3000])
    until_saved(tmp_path, 1)
    host.process.kill()
    again = start_host(*flags(tmp_path))
    turn(again, "two", history, NEXT)
    assert again.end("two")["cached_tokens"] > 300


def test_what_is_evicted_is_saved(start_host: StartHost, tmp_path: Path) -> None:
    host = start_host("--context", "768", *flags(tmp_path))
    histories: list[list[dict[str, Any]]] = [[] for _ in range(4)]
    for number, history in enumerate(histories):
        turn(
            host,
            f"one{number}",
            history,
            f"number {number}: " + LONG[number * 100 :][:900],
            owner=f"o{number}",
        )
    turn(host, "two0", histories[0], NEXT, owner="o0")
    assert host.end("two0")["cached_tokens"] > 150


def test_another_owner_gets_nothing_of_a_snapshot(start_host: StartHost, tmp_path: Path) -> None:
    history: list[dict[str, Any]] = []
    host = start_host(*flags(tmp_path))
    turn(host, "one", history, LONG[:3000], owner="alice")
    assert host.stop() == 0
    again = start_host(*flags(tmp_path))
    turn(again, "two", list(history), NEXT, owner="bob")
    assert again.end("two")["cached_tokens"] < 16


def test_a_prefix_that_several_share_is_saved_for_all(start_host: StartHost, tmp_path: Path) -> None:
    system = [{"role": "system", "content": [{"text": LONG[:2000], "shared": True}]}]
    host = start_host(*flags(tmp_path))
    for owner in ("a", "b"):
        ask(host, owner, [*system, {"role": "user", "content": f"I am {owner}. " + LONG[:600]}], owner=owner)
    assert host.stop() == 0
    again = start_host(*flags(tmp_path))
    ask(again, "c", [*system, {"role": "user", "content": "I am new."}], owner="c")
    assert again.end("c")["cached_tokens"] > 200


@pytest.mark.parametrize("size", [1, pytest.param(1000, marks=pytest.mark.soak)])
def test_damaged_files_are_misses(start_host: StartHost, tmp_path: Path, size: int) -> None:
    history: list[dict[str, Any]] = []
    host = start_host(*flags(tmp_path))
    expected = turn(host, "one", history, LONG[:1500])
    assert host.stop() == 0
    (good,) = tmp_path.glob("*/*.kv")
    data = good.read_bytes()
    draw = random.Random(5)
    for number in range(size):
        good.with_name(f"{number:04d}.kv").write_bytes(damaged(data, draw))
    good.write_bytes(damaged(data, draw))
    good.with_name("left.part").write_bytes(data[:1000])
    again = start_host(*flags(tmp_path))
    again.generate("x", "hello", max_tokens=2)
    again.text("x")
    assert ask(again, "two", history[:1]) == expected
    assert again.end("two")["cached_tokens"] < 64 or good.read_bytes() == data
    assert again.stop() == 0


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A file with a flipped bit, cut short, extended, or of noise."""
    kind = draw.randrange(4)
    if kind == 0:
        place = draw.randrange(len(data))
        return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]
    if kind == 1:
        return data[: draw.randrange(len(data))]
    if kind == 2:
        return data + draw.randbytes(draw.randrange(1, 100))
    return draw.randbytes(draw.randrange(4096))


# --------------------------------------------------------------------------- files and index


def saved(
    folder: Path, tokens: list[int], state: bytes = b"state", owner: str = "o", shared: int = 0
) -> Snapshot:
    snapshot = Snapshot(folder / file_name(owner, tokens), owner, shared, tokens, [(1, len(tokens))])
    write_file(snapshot, state)
    return snapshot


@given(
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=50),
    st.binary(max_size=300),
    st.text(max_size=20),
    st.data(),
)
def test_a_file_is_whole_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, tokens: list[int], state: bytes, owner: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("kv")
    snapshot = saved(folder, tokens, state, owner)
    header = read_header(snapshot.path)
    assert header is not None
    assert (header.owner, header.tokens, read_content(header)) == (owner, tokens, state)
    raw = bytearray(snapshot.path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    snapshot.path.write_bytes(raw)
    again = read_header(snapshot.path)
    assert again is None or read_content(again) is None
    snapshot.path.write_bytes(bytes(raw[:place]))
    assert read_header(snapshot.path) is None


def put(
    folder: SnapshotFolder,
    owner: str,
    shared: int,
    tokens: list[int],
    state: bytes,
    *,
    first: int | None = None,
) -> bool:
    """Save a sequence that can be continued from ``first`` on; None: at its end only."""
    stretches = [(len(tokens) if first is None else first, len(tokens))]
    return folder.save(
        owner, shared, tokens, state, stretches, folder.outgrown(owner, shared, tokens, stops=[])
    )


def folder_of(root: Path, *, limit: int = 1 << 20, key: str = "model") -> SnapshotFolder:
    folder = SnapshotFolder(root, key, SnapshotWriter(root, limit, limit))
    folder.scan()
    return folder


def test_a_window_model_continues_at_the_end_only(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert put(folder, "o", 2, [1, 2, 3, 4], b"s")
    assert folder.find([1, 2, 3, 4, 5], 0, "o")[1] == 4
    assert folder.find([1, 2, 3, 9, 5], 0, "o") == (None, 0)
    assert folder.find([1, 2, 3, 4], 0, "o") == (None, 0), "the last token must be decoded"
    assert folder.find([1, 2, 3, 4, 5], 5, "p") == (None, 0), "two tokens are shared, but not the end"
    free = folder_of(tmp_path / "other")
    assert put(free, "o", 2, [1, 2, 3, 4], b"s", first=1)
    assert free.find([1, 2, 3, 9, 5], 0, "o")[1] == 3
    assert free.find([1, 2, 3, 4, 5], 5, "p")[1] == 2


def test_a_conversation_that_went_on_replaces_its_snapshot(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    for tokens in ([1, 2], [1, 2, 3], [1, 2, 3, 4]):
        assert put(folder, "o", 2, tokens, b"s")
        assert folder.writer.flush(10)
    assert sorted(len(read_header(path).tokens) for path in tmp_path.glob("*/*.kv")) == [2, 4]  # type: ignore[union-attr]


def test_the_oldest_files_go_first_and_a_full_disk_is_left_alone(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, limit=3000)
    other = folder_of(tmp_path, limit=3000, key="older model")
    assert put(other, "o", 0, [7, 7], NOISE[:900])
    assert other.writer.flush(10)
    for number in range(4):
        assert put(folder, "o", 0, [number, 5], NOISE[:900])
        assert folder.writer.flush(10)
    assert sum(path.stat().st_size for path in tmp_path.glob("*/*")) <= 3000
    assert list(other.folder.glob("*.kv")) == []
    assert [folder.find([number, 5, 1], 0, "o")[1] for number in range(4)] == [0, 0, 2, 2]
    assert [folder.has("o", [number, 5]) for number in range(4)] == [False, False, True, True]
    assert put(folder, "o", 0, [9, 9], NOISE)
    assert folder.writer.flush(10)
    assert folder.find([9, 9, 1], 0, "o")[0] is None


def test_what_a_refused_file_would_replace_stays(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, limit=3000)
    assert put(folder, "o", 0, [1, 2], b"short")
    assert put(folder, "o", 0, [1, 2, 3], NOISE)
    assert folder.writer.flush(10)
    kept, length = folder.find([1, 2, 3, 4], 0, "o")
    assert kept is not None and length == 2 and folder.load(kept) == b"short"
    assert not folder.has("o", [1, 2, 3])


def test_the_index_has_nothing_that_could_not_be_written(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    shutil.rmtree(folder.folder)
    assert put(folder, "o", 0, [1, 2], b"s")
    assert folder.writer.flush(10)
    assert folder.find([1, 2, 3], 0, "o")[0] is None and not folder.has("o", [1, 2])
    assert folder.writer.saved == 0


def test_what_was_deleted_by_others_is_saved_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert put(folder, "o", 0, [1, 2], b"s")
    assert folder.writer.flush(10)
    assert folder.has("o", [1, 2])
    shutil.rmtree(folder.folder)
    assert not folder.has("o", [1, 2])


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    snapshot = saved(tmp_path, [1, 2, 3])
    assert snapshot.path.name.startswith(owner_digest("o"))
    assert snapshot.path.stat().st_mode & 0o077 == 0


def test_what_waits_to_be_written_is_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_write = threading.Event()

    def slow(snapshot: Snapshot, state: bytes) -> None:
        assert may_write.wait(20)
        write_file(snapshot, state)

    monkeypatch.setattr("model_host.snapshots.writer.write_file", slow)
    folder = folder_of(tmp_path)
    assert put(folder, "o", 2, [1, 2, 3, 4], b"state")
    snapshot, _ = folder.find([1, 2, 3, 4, 5], 0, "o")
    assert snapshot is not None and folder.load(snapshot) == b"state"
    may_write.set()
    assert folder.writer.flush(10)
    assert folder.load(snapshot) == b"state" and snapshot.path.exists()
