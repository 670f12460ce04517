"""Files that runs read: named by their words, and what small models say about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.code.index import ProjectIndexer
from gateway.runs.planning.known import known_in
from gateway.runs.reading import NO_ANSWER, checked_reading
from gateway.store.code.projects import add_project
from gateway.store.db import Database
from tests.writing import write_files

RULES = """# House rules

Quiet hours start at 22:30. The washing machine costs 3 euros.
Check-out is before 11 in the morning.
"""


@pytest.mark.parametrize(
    ("question", "written", "said"),
    [
        (
            "what time must I check out",
            "| house.md",
            '"house.md" says: Check-out is before 11 in the morning.',
        ),
        ("what time must I check out", "Check-out is before 11.", "Check-out is before 11."),
        (
            "what time must I check out",
            "You must leave at 9.",
            '"house.md" says: Check-out is before 11 in the morning.',
        ),
        ("Write a haiku about it", "Quiet at night.", "Quiet at night."),
        (
            "is there a sauna",
            "There is a Finnish sauna.",
            f"{NO_ANSWER}house.md plainly answers that. The file begins:\n{RULES}",
        ),
        ("give me a summary of house.md", "Anna Smith wrote 5 rules.", f"The file begins:\n{RULES}"),
    ],
)
def test_a_small_model_says_what_the_file_says(question: str, written: str, said: str) -> None:
    assert checked_reading("house.md", RULES, question, written) == said


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("read the house rules and tell me when it is quiet", {"house rules": "docs/house_rules.md"}),
        ("Xem readme", {"readme": "README.md"}),
        ("read the house", {}),
        ("the house rules", {}),
        ("check the notes", {}),  # two of them
        ("read the house rules in docs/notes.md", {"docs/notes.md": "docs/notes.md"}),
    ],
)
def test_a_document_is_named_by_its_words(tmp_path: Path, text: str, files: dict[str, str]) -> None:
    paths = ("docs/house_rules.md", "docs/notes.md", "old/notes.md", "README.md", "rules.py")
    write_files(tmp_path / "p", dict.fromkeys(paths, "# A\n\nText.\n"))
    database = Database(tmp_path / "hearth.db")
    database.open()
    project = database.write_sync(lambda c: add_project(c, str(tmp_path / "p"), "p", [], docs=True))
    ProjectIndexer(database, project).run()
    assert database.read_sync(lambda c: known_in(c, text)).files == files
    database.close()
