"""What was exported and imported is exported again as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.base.redact import redact
from gateway.cli.common.files import opened_database
from gateway.store.memory.assistants import Assistant, add_assistant
from gateway.store.memory.conversations import add_conversation
from gateway.store.memory.facts import put_fact
from gateway.store.memory.summaries import add_summary
from gateway.store.memory.tasks import add_task
from tests.gateway.cli.imports.test_transfer import new_task, run
from tests.gateway.memory.test_facts import fact
from tests.gateway.store.test_conversations import digest, make, say


def exported(data: Path, target: Path, form: str) -> dict[str, str]:
    """What an export has, by file; without the time of the export."""
    if form == "lines":
        run(data, "export", str(target))
        return {"": target.read_text().partition("\n")[2]}
    run(data, "export", str(target), "--documents")
    return {
        str(path.relative_to(target)): path.read_text()
        for path in sorted(target.rglob("*"))
        if path.is_file()
    }


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(
    str.strip
)
LINES = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["user", "assistant"]), TEXTS, st.booleans(), st.booleans()),
    max_size=12,
)
MEANS = st.lists(
    st.tuples(
        st.sampled_from(["chat", "code", "channel"]),
        st.sampled_from(["ceiling", "rounds", "window", "conversations"]),
        TEXTS,
        st.booleans(),
    ),
    min_size=3,
    max_size=3,
)


def build(c: apsw.Connection, lines: Any, means: Any) -> None:
    """Three conversations, each continuing the one before, with interleaved messages, summaries, facts and tasks."""
    for number, (kind, policy, biography, archived) in enumerate(means):
        made = make(f"c{number}", previous=f"c{number - 1}" if number else None)
        fields = {"kind": kind, "policy": policy, "instructions": biography[::-1]}
        if biography:
            fields["assistant"] = f"a{number}"
            at = float(number)
            mind = {"name": "", "biography": biography, "version": 1, "created_at": at, "updated_at": at}
            add_assistant(c, Assistant(id=f"a{number}", owner=made.owner, **mind))
        times = {"created_at": float(number), "archived_at": 99.5 if archived else None}
        add_conversation(c, msgspec.structs.replace(made, **fields, **times))
    seqs: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for at, (where, role, text, failed, answers) in enumerate(lines):
        mine = seqs[where]
        more = {"answers": mine[-1]} if mine and answers and role == "assistant" else {}
        clean = redact(text)[0]
        mine.append(say(c, f"m{at}", role, conversation=f"c{where}", text=clean, failed=failed, **more).seq)
    for where in (0, 1):
        if len(mine := seqs[where]) > 2:
            one = add_summary(c, digest(mine[0], mine[0], conversation=f"c{where}"))
            two = add_summary(c, digest(mine[1], mine[1], conversation=f"c{where}"))
            add_summary(c, digest(mine[0], mine[1], "today", f"c{where}"), [one, two])
        first = mine[0] if mine else 0
        told = {"conversation": f"c{where}", "message": first} if mine else {}
        put_fact(c, fact("Lives in Huế.", at=2.0 * where + 1.0, **told))
        put_fact(c, fact("Lives in Hanoi.", at=2.0 * where + 2.0))
        add_task(c, new_task(f"Task {where}", "task", **told))


@settings(max_examples=25, deadline=None)
@given(lines=LINES, means=MEANS)
@pytest.mark.parametrize("form", ["lines", "documents"])
def test_an_export_that_is_imported_is_exported_again_as_it_was(
    form: str, lines: Any, means: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as name:
        folder = Path(name)
        with opened_database(folder / "one" / "hearth.db") as database:
            database.write_sync(lambda c: build(c, lines, means))
        before = exported(folder / "one", folder / "first", form)
        done = run(folder / "two", "import", str(folder / "first"))
        assert done.exit_code == 0, done.output or done.exception
        assert exported(folder / "two", folder / "second", form) == before


@pytest.mark.parametrize("form", ["lines", "documents"])
def test_a_summary_that_goes_on_from_the_previous_conversation_is_imported(tmp_path: Path, form: str) -> None:
    def fill(c: apsw.Connection) -> None:
        add_conversation(c, make())
        old = [say(c, f"m{n}").seq for n in range(3)]
        add_conversation(c, make("c2", previous="c1"))
        inherited = add_summary(c, digest(old[0], old[2], "now", "c2"))
        new = say(c, "n1", conversation="c2").seq
        add_summary(c, digest(old[0], new, "today", "c2"), [inherited])

    with opened_database(tmp_path / "one" / "hearth.db") as database:
        database.write_sync(fill)
    before = exported(tmp_path / "one", tmp_path / "first", form)
    done = run(tmp_path / "two", "import", str(tmp_path / "first"))
    assert done.exit_code == 0, done.output or done.exception
    assert exported(tmp_path / "two", tmp_path / "second", form) == before
