"""`hearth import-wiki FOLDER`: a program's manual as a wiki."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.local import LocalWiki
from gateway.wiki.source import Section
from tests.gateway.cli.conftest import Run

PAGE = """<html><head><title>Chapter 2. Keeping it up to date</title></head><body>
<div class="navheader"><table><tr><th>Prev</th></tr></table></div>
<div class="chapter"><h1><a id="keeping"></a>Chapter 2. Keeping it up to date</h1><p>Run it often.</p>
<div class="section"><h2><a id="log"></a>2.1. How can I keep a log?</h2><p>With <b>dpkg</b>.</p></div></div>
<div class="navfooter"><p>Next</p></div></body></html>"""


def manual(tmp_path: Path) -> Path:
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "keep.html").write_text(PAGE)
    (folder / "notes.md").write_text("# Notes\n\nShort ones.\n")
    return folder


async def test_pages_of_a_folder(hearth: Run, tmp_path: Path, database: Database) -> None:
    folder = manual(tmp_path)
    done = hearth("import-wiki", str(folder), "--name", "The manual")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The manual: 2 pages read")
    wiki = LocalWiki(database, WikiSettings())
    found = await wiki.fetch("Keeping it up to date")
    assert found.sections == [
        Section("", "", 1, "Run it often."),
        Section("How can I keep a log?", "log", 2, "With dpkg."),
    ]
    assert (await wiki.fetch("Notes")).sections == [Section("", "", 1, "Short ones.")]
    assert (await wiki.site()).name == "The manual"


def test_only_what_changed_is_written(hearth: Run, tmp_path: Path) -> None:
    folder = manual(tmp_path)
    hearth("import-wiki", str(folder))
    (folder / "keep.html").write_text(PAGE.replace("often", "daily"))
    (folder / "notes.md").unlink()
    (folder / "new.md").write_text("# New\n\nx\n")
    counts = json.loads(hearth("import-wiki", str(folder), "--json", "--prune").stdout)["counts"]
    assert {name: counts[name] for name in ("added", "updated", "unchanged", "removed", "failed")} == {
        "added": 1,
        "updated": 1,
        "unchanged": 0,
        "removed": 1,
        "failed": 0,
    }
    again = json.loads(hearth("import-wiki", str(folder), "--json").stdout)["counts"]
    assert again["unchanged"] == 2


async def test_a_manual_in_one_file_becomes_pages(hearth: Run, tmp_path: Path, database: Database) -> None:
    folder = tmp_path / "kettle"
    folder.mkdir()
    (folder / "manual.txt").write_text("The Kettle\n\nOne.\n\n1. Boiling\n\nIt boils.\n")
    assert hearth("import-wiki", str(folder)).returncode == 0
    wiki = LocalWiki(database, WikiSettings())
    assert [each.heading for each in (await wiki.fetch("The Kettle")).sections] == ["", "Boiling"]
    long = "".join(f"1.{n}. Part {n}\n\n{f'Sentence {n}. ' * 150}\n\n" for n in range(1, 41))
    (folder / "manual.txt").write_text(f"The Kettle\n\n1. Boiling\n\nIt boils.\n\n{long}")
    counts = json.loads(hearth("import-wiki", str(folder), "--json").stdout)["counts"]
    assert (counts["added"], counts["updated"]) == (41, 1)
    assert (await wiki.fetch("Part 7")).sections[0].anchor == "17-part-7"
    again = json.loads(hearth("import-wiki", str(folder), "--json", "--prune").stdout)["counts"]
    assert (again["added"], again["unchanged"], again["removed"]) == (0, 42, 0)
    (folder / "manual.txt").write_text(f"1. The Kettle\n\n{long}")
    counts = json.loads(hearth("import-wiki", str(folder), "--json").stdout)["counts"]
    assert (counts["unchanged"], counts["removed"]) == (40, 1)


def test_a_folder_without_pages(hearth: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = hearth("import-wiki", "empty")
    assert done.returncode == 1 and "has no HTML, Markdown or text file" in done.stderr


def test_a_page_that_cannot_be_read_is_named(hearth: Run, tmp_path: Path) -> None:
    folder = manual(tmp_path)
    (folder / "huge.md").write_text("# Huge\n" + "x" * (4 * 2**20))
    done = hearth("import-wiki", str(folder))
    assert done.returncode == 0
    assert "failed: Huge: huge.md is larger than 4 MiB" in done.stdout
