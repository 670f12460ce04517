"""The long dialogues of `eval/dialogues`: their form, what leaves no trace of them, and what is kept of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.base.errors import ConfigurationError
from gateway.base.redact import redact
from gateway.evaluation.dialogues import Dialogue, is_dialogue, load_dialogues
from gateway.evaluation.replay import outdated, places
from gateway.memory.summaries.dialogue import dialogue
from gateway.memory.summaries.extract import extract
from tests.conftest import ROOT
from tests.gateway.memory.test_compose import line

FOLDER = ROOT / "eval" / "dialogues"
ALL = load_dialogues(FOLDER)

SMALL = """
title = "A van"
kind = "chat"
log = '''
## 2026-03-01 08:00
> the van comes on the 18th, the code of the gate is 5519
<?
> def load(van):

        return van.boxes
< Thirty boxes, then.
## 2026-03-02 08:00
> they rang: the van now comes on the 25th
'''
planted = [{ asked = "When does the van come?", said = "now comes on the 25th", has = ["25th"], was = ["van.*18th"] }]
tasks = [{ title = ["van"], state = "done" }]
secrets = ["5519"]
"""


def test_a_message_has_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    assert is_dialogue(path) and not is_dialogue(ROOT / "eval" / "memory.toml")
    assert load_dialogues(path)[0].log[3].text == "def load(van):\n\n    return van.boxes"


def test_the_set_is_large_enough() -> None:
    assert {each.kind for each in ALL} == {"chat", "channel", "code"} and len(ALL) == 16
    for each in ALL:
        assert each.messages >= 400 and len(each.planted) >= 25 and each.secrets and each.tasks, each.id
        assert sum(bool(item.was) for item in each.planted) >= 6, each.id
        times = [line.at for line in each.log if line.at is not None]
        assert times == sorted(times) and len(times) >= 15, each.id


def test_secrets_of_the_dialogues_are_found_and_nothing_else() -> None:
    for each in ALL[::4]:
        for spoken in each.log:
            clean, count = redact(spoken.text)
            assert not any(secret in clean for secret in each.secrets), clean
            assert count == sum(secret in spoken.text for secret in each.secrets), clean


def test_extracts_keep_most_of_what_was_planted() -> None:
    """In 700 tokens, a tenth to a sixth of the log."""
    kept = stale = 0
    for each in ALL[::4]:
        text = extract(_said(each), 700, lambda part: len(part) * 10 // 32 + 1, _speakers(each))
        kept += sum(bool(places(text, item.has)) for item in each.planted)
        stale += sum(outdated(text, item) for item in each.planted)
    assert kept >= 70, f"{kept} of {sum(len(each.planted) for each in ALL[::4])}"
    assert stale <= 6


def _said(each: Dialogue) -> str:
    spoken = [part for part in each.log if part.at is None and not part.by_model]
    return dialogue([line(n, part.role, part.text, speaker=part.speaker) for n, part in enumerate(spoken)])


def _speakers(each: Dialogue) -> set[str]:
    return {part.speaker for part in each.log} | {"User", "Assistant"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("now comes on the 25th\\n'''", "rang\\n'''", "no message has `now comes on the 25th`"),
        ("> def", "def", "is no message"),
        ('secrets = ["5519"]', 'secrets = ["99"]', "no message has the secret `99`"),
        ("2026-03-02", "2026-13-02", "month must be in 1..12"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace(old.replace("\\n", "\n"), new.replace("\\n", "\n")))
    with pytest.raises(ConfigurationError, match=problem) as caught:
        load_dialogues(path)
    assert str(path) in caught.value.message


def test_the_first_messages_have_their_own_items(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    (first, *_), (whole, *_) = load_dialogues(path, 4), load_dialogues(path, 5)
    assert (first.id, first.messages, whole.messages) == ("small ceiling 4", 4, 5)
    assert not first.planted and not first.tasks and first.secrets == ["5519"]
    assert whole.planted and whole.tasks
