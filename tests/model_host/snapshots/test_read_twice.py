"""A prompt that was prefilled before the model was unloaded is not prefilled again, on a model with sliding windows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model_host.protocol.parts import owner_digest
from model_host.snapshots.snapshot_file import read_header
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess
from tests.model_host.snapshots.test_snapshots import (
    LONG,
    NOISE,
    ask,
    flags,
    folder_of,
    put,
    turn,
    until_saved,
)

SYSTEM = {"role": "system", "content": LONG[:2500]}  # more than two windows
USER, ASSISTANT = ({"role": role} for role in ("user", "assistant"))
TALK = [SYSTEM, USER | {"content": LONG[2000:3000]}, ASSISTANT | {"content": LONG[3000:4000]}]
ASKED = [*TALK, USER | {"content": "What is word7?"}]
Messages = list[dict[str, Any]]
# A host that says how large llama.cpp's own states are.
NOTED = """
import runpy, sys
from model_host.engine.engine import Engine
def state(self, sequence, end, flags=0, state=Engine._state):
    found = state(self, sequence, end, flags)
    if not flags:
        print("plain", end, len(found), file=sys.stderr, flush=True)
    return found
Engine._state = state
runpy.run_module("model_host", run_name="__main__")
"""


def page(question: str) -> Messages:
    return [USER | {"content": [{"text": LONG, "shared": True}, {"text": question}]}]


def tokens(host: HostProcess, messages: Messages) -> int:
    name = f"count{len(host.events)}"
    host.send(op="count", id=name, messages=messages)
    return int(host.end(name)["counts"][0])


@pytest.mark.parametrize(
    ("again", "prefilled"),
    [
        pytest.param(ASKED, 40, id="another reply"),
        pytest.param([*TALK, USER | {"content": "No: what is word9?"}], 40, id="an edited message"),
        pytest.param([SYSTEM, USER | {"content": "Something else."}], 40, id="a new chat"),
    ],
)
def test_a_prompt_that_leaves_a_saved_one(
    start_host: StartHost, tmp_path: Path, again: Messages, prefilled: int
) -> None:
    fresh = start_host()
    expected = ask(fresh, "again", again)
    host = start_host(*flags(tmp_path))
    ask(host, "one", ASKED)
    assert host.stop() == 0
    back = start_host(*flags(tmp_path))
    assert ask(back, "again", again) == expected
    end = back.end("again")
    assert end["prompt_tokens"] > 700
    assert end["prompt_tokens"] - end["cached_tokens"] < prefilled


NO_SYSTEM_ROLE = r"""
import sys; sys.path.insert(0, "models")
import pathlib, random_gemma as g
plain = g.CHATS["turns"].template
text = plain.replace("[0]['role'] == 'system' -%}", "[0]['role'] == 'system' -%}{{ raise_exception('no system') }}")
assert text != plain
g.Chat.template = property(lambda self: text)
g.write(pathlib.Path(sys.argv[1]), shape="tiny")
"""


@pytest.mark.parametrize(
    "again",
    [
        pytest.param([SYSTEM, USER | {"content": "Something else."}], id="the first message"),
        pytest.param(
            [SYSTEM, USER | {"content": "Who?"}, ASSISTANT | {"content": "I."}, TALK[1]], id="a third"
        ),
    ],
)
def test_the_system_prompt_of_a_template_without_a_system_role(
    start_host: StartHost, tmp_path: Path, again: Messages
) -> None:
    """Its text opens the first user message there, as with Gemma 2."""
    model, script = tmp_path / "plain.gguf", tmp_path / "make.py"
    script.write_text(NO_SYSTEM_ROLE)
    subprocess.run([sys.executable, str(script), str(model)], check=True, cwd=ROOT)
    host = start_host(*flags(tmp_path / "kv"), model=model)
    ask(host, "one", [SYSTEM, USER | {"content": LONG[2500:4000]}])
    assert host.stop() == 0
    back = start_host(*flags(tmp_path / "kv"), model=model)
    ask(back, "again", again)
    assert back.end("again")["cached_tokens"] > 0.9 * tokens(back, [SYSTEM | USER])


def test_the_system_prompt_stays_while_a_conversation_goes_on(start_host: StartHost, tmp_path: Path) -> None:
    """Each host restores the end of the conversation alone, and saves what it did not restore as well."""
    history: Messages = [SYSTEM]
    for number in range(4):
        host = start_host("--context", "4096", *flags(tmp_path))
        turn(host, f"turn{number}", history, LONG[number * 900 :][:900])
        assert host.stop() == 0
    host = start_host("--context", "4096", *flags(tmp_path))
    ask(host, "new", [SYSTEM, USER | {"content": "Something else."}])
    assert host.end("new")["cached_tokens"] > 600


@pytest.mark.parametrize("said", [100, 500, 900, 2000])
def test_further_places_make_a_file_half_as_large_again_at_most(
    start_host: StartHost, tmp_path: Path, said: int
) -> None:
    """Where messages are longer than a window, no two windows overlap."""
    history: Messages = [SYSTEM]
    host = start_host("--context", "6000", *flags(tmp_path), code=NOTED)
    for number in range(2):
        turn(host, f"turn{number}", history, LONG[number * said :][:said], max_tokens=said // 8)
    assert host.stop() == 0
    plain = {int(end): int(size) for end, size in re.findall(rb"plain (\d+) (\d+)", host.stderr)}
    found = list(tmp_path.glob("*/*.kv"))
    assert found
    for path in found:
        header = read_header(path)
        assert header is not None and header.stretches[0][0] < len(header.tokens)
        assert path.stat().st_size <= 1.5 * plain[len(header.tokens)]
    assert sum(path.stat().st_size for path in found) <= 1.5 * max(plain.values())


@pytest.mark.parametrize("killed", [False, True])
def test_a_second_question_about_a_page(start_host: StartHost, tmp_path: Path, killed: bool) -> None:
    """Of another owner, who gets the page and nothing of the first question."""
    second = page("Who is word9?")
    fresh = start_host()
    expected = ask(fresh, "two", second, owner="bob")
    host = start_host(*flags(tmp_path, after=0.0 if killed else 3600.0))
    ask(host, "one", page("What is word7?"), owner="alice")
    if killed:
        until_saved(tmp_path, 1)
        host.kill()
    else:
        assert host.stop() == 0
    (path,) = tmp_path.glob("*/*.kv")
    saved = read_header(path)
    assert saved is not None
    assert (saved.owner, saved.shared) == ("", len(saved.tokens)), "private text is saved as public"
    assert len(saved.tokens) < tokens(fresh, page("W"))
    back = start_host(*flags(tmp_path))
    assert ask(back, "two", second, owner="bob") == expected
    end = back.end("two")
    assert end["prompt_tokens"] - end["cached_tokens"] < 0.05 * end["prompt_tokens"]


def test_another_page_behind_the_same_first_one(start_host: StartHost, tmp_path: Path) -> None:
    """Even where the prompt leads from the page to the question with shared text."""
    leads = [{"text": LONG, "shared": True}, {"text": "\n\nQuestion: ", "shared": True}, {"text": "Why?"}]
    both = [leads[0], {"text": "\n\n[2] " + LONG[:1000], "shared": True}, {"text": "Why?"}]
    host = start_host(*flags(tmp_path))
    ask(host, "one", [USER | {"content": leads}], owner="alice")
    assert host.stop() == 0
    back = start_host(*flags(tmp_path))
    ask(back, "two", [USER | {"content": both}], owner="bob")
    first = tokens(back, [USER | {"content": LONG}])
    assert back.end("two")["cached_tokens"] > first - 20


def test_where_prompts_were_seen_to_part_is_a_place_to_continue(
    start_host: StartHost, tmp_path: Path
) -> None:
    first, others = LONG[:3000], [f"Page {n}. " + LONG[n * 500 :][:1500] for n in range(3)]
    prompts = [
        [USER | {"content": [{"text": first + other, "shared": True}, {"text": "Why?"}]}] for other in others
    ]
    host = start_host(*flags(tmp_path))
    for number in range(2):
        ask(host, str(number), prompts[number], owner=f"o{number}")
    assert host.stop() == 0
    back = start_host(*flags(tmp_path))
    ask(back, "new", prompts[2], owner="o2")
    assert back.end("new")["cached_tokens"] > 0.5 * back.end("new")["prompt_tokens"]


NO_ROOM = """
import runpy
import model_host.engine.engine as module
module._MOST_BYTES = 0.5
runpy.run_module("model_host", run_name="__main__")
"""


def test_erasing_an_owner_erases_every_part_of_a_conversation(start_host: StartHost, tmp_path: Path) -> None:
    """Public text that begins it stays, without a token of what follows."""
    rules = {"role": "system", "content": [{"text": LONG[:1000], "shared": True}, {"text": LONG[1000:2500]}]}
    talks: list[tuple[str, Messages]] = [("alice", [rules]), ("alice", [rules]), ("bob", [rules])]
    # With so little room, the system prompt of two conversations gets a file of its own.
    for number in range(2):
        host = start_host("--context", "6000", *flags(tmp_path), code=NO_ROOM)
        for which, (owner, history) in enumerate(talks):
            said = f"{owner} {which}: {LONG[number * 900 :][:900]}"
            turn(host, f"{which}{number}", history, said, owner=owner)
        assert host.stop() == 0

    def owners() -> list[str]:
        return sorted(saved.owner for path in tmp_path.glob("*/*.kv") if (saved := read_header(path)))

    assert owners() == ["", "alice", "alice", "alice", "bob"]
    host = start_host("--context", "4096", *flags(tmp_path))
    shared = tokens(host, [{"role": "system", "content": LONG[:1000]}, USER | {"content": "W"}])
    host.send(op="forget", id="f", owner="alice")
    assert host.end("f")["event"] == "forgotten"
    assert owners() == ["", "bob"]
    public = read_header(next(tmp_path.glob(f"*/{owner_digest('')}-*.kv")))
    assert public is not None and public.shared == len(public.tokens) < shared
    ask(host, "again", talks[0][1][:2], owner="alice")
    assert 200 < host.end("again")["cached_tokens"] < shared


def test_many_pages_leave_a_conversation_and_many_conversations_a_page(
    start_host: StartHost, tmp_path: Path
) -> None:
    """Each kind has a limit of its own."""
    limits = ["--snapshot-bytes", "1000000", "--shared-snapshot-bytes", "800000"]  # two or three files each

    def host_after(*asked: tuple[str, Messages]) -> HostProcess:
        host = start_host(*flags(tmp_path), *limits)
        for number, (owner, messages) in enumerate(asked):
            ask(host, f"n{number}", messages, owner=owner)
        assert host.stop() == 0
        return start_host(*flags(tmp_path), *limits)

    pages = [
        ("anna", [USER | {"content": [{"text": f"{n} {LONG}", "shared": True}, {"text": "Why?"}]}])
        for n in range(5)
    ]
    talks = [(f"o{n}", [USER | {"content": f"{n} {LONG}"}]) for n in range(5)]
    back = host_after(("alice", ASKED), *pages)
    ask(back, "on", ASKED, owner="alice")
    assert back.end("on")["cached_tokens"] > 700
    back = host_after(*talks)
    ask(back, "page", pages[-1][1], owner="bob")
    assert back.end("page")["cached_tokens"] > 700
    ask(back, "gone", ASKED, owner="alice")
    assert back.end("gone")["cached_tokens"] < 50, "five conversations of others are within the limit"


# --------------------------------------------------------------------------- the index


def test_a_stretch_is_continued_anywhere_inside_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert put(folder, "o", 2, [1, 2, 3, 4, 5, 6], b"state", first=3)
    assert folder.find([1, 2, 3, 4, 9, 9], 0, "o")[1] == 4
    assert folder.find([1, 2, 9, 9, 9, 9], 0, "o")[1] == 0
    assert folder.find([1, 2, 3, 4, 5, 6], 6, "p")[1] == 0, "two tokens are shared"


def test_a_state_that_ends_where_others_begin_is_not_outgrown(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert put(folder, "o", 0, [1, 2], b"system prompt")
    assert put(folder, "o", 0, [1, 2, 3], b"turn")
    outgrown = folder.outgrown("o", 0, [1, 2, 3, 4], stops=[2])
    assert [one.tokens for one in outgrown] == [[1, 2, 3]]
    assert folder.covers([1, 2], 0, "o") and not folder.covers([1, 2, 3, 4], 0, "o")
    assert not folder.covers([1, 2, 3], 0, "o", besides=outgrown)


def test_shared_text_that_was_used_more_often_stays_longer(tmp_path: Path) -> None:
    """Although it was used earlier."""
    folder = folder_of(tmp_path, limit=2500)
    for number in range(2):
        assert put(folder, "", 2, [number, 5], NOISE[:900]) and folder.writer.flush(10)
        for _ in range(3 - number):
            assert folder.covers([number, 5], 2, "o")
    assert put(folder, "", 2, [2, 5], NOISE[:900]) and folder.writer.flush(10)
    assert [folder.covers([number, 5], 2, "o") for number in range(3)] == [True, False, True]


def test_a_beginning_that_is_found_again_stays(tmp_path: Path) -> None:
    """What a conversation begins with is used, even where it is not restored: it is in memory already."""
    folder = folder_of(tmp_path, limit=2500)
    for number in range(2):
        assert put(folder, "o", 0, [number, 5], NOISE[:900]) and folder.writer.flush(10)
    assert folder.covers([0, 5], 0, "o")
    assert put(folder, "o", 0, [2, 5], NOISE[:900]) and folder.writer.flush(10)
    assert [folder.covers([number, 5], 0, "o") for number in range(3)] == [True, False, True]
