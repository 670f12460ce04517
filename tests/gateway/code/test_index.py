"""Indexing again: only what changed is parsed, only what the change concerns is resolved, nothing else is written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.code import queries
from gateway.code.index import ProjectIndexer
from gateway.code.languages.facts import VERSION
from gateway.code.queries import references
from gateway.code.source import lines_of
from gateway.store.code import graph
from gateway.store.code.projects import add_project, list_projects, project_of, remove_project
from gateway.store.db import Database
from tests.gateway.code.conftest import Indexable, Make


def test_an_unchanged_project_writes_nothing(project: Make) -> None:
    made = project({"a.py": "def f(): ...\n", "b.py": "from a import f\nf()\n", "c.md": "# Notes\n"})
    before = made.database.read_sync(lambda c: c.pragma("data_version"))
    os.utime(made.root / "a.py")  # touched, not changed
    done = made.index()
    assert (done.parsed, done.resolved, done.removed) == (0, 0, 0)
    assert made.database.read_sync(lambda c: c.pragma("data_version")) == before


def test_what_waits_is_counted_without_indexing(project: Make) -> None:
    made = project({"a.py": "def f(): ...\n", "b.py": "from a import f\nf()\n"})
    indexer = ProjectIndexer(made.database, made.row)
    assert indexer.waiting() == 0
    made.write({"a.py": "def g(): ...\n", "c.py": "x = 1\n"})
    (made.root / "b.py").unlink()
    assert indexer.waiting() == 3
    assert made.row.files == 2, "nothing is indexed yet"
    made.index()
    assert ProjectIndexer(made.database, made.row).waiting() == 0


def test_a_new_body_resolves_its_own_file_alone(project: Make) -> None:
    made = project({"a.py": "def f():\n    return 1\ndef g(): ...\n", "b.py": "from a import f\nf()\n"})
    made.write({"a.py": "\n\ndef f():\n    g()\n    return 1\ndef g(): ...\n"})
    done = made.index()
    assert (done.parsed, done.resolved) == (1, 1)
    assert {("b", "a.f", "import"), ("a.f", "a.g", "same file")} <= made.edges()


def test_a_renamed_function_opens_the_calls_of_its_old_name_and_closes_those_of_its_new(
    project: Make,
) -> None:
    made = project(
        {
            "a.py": "def f(): ...\n",
            "b.py": "from a import f\nf()\n",
            "c.py": "import a\na.h()\n",
            "d.py": "x = 1\n",
        }
    )
    assert {(a, b) for a, b, _ in made.edges()} == {("b", "a.f")}
    made.write({"a.py": "def h(): ...\n"})
    assert made.index().resolved == 3
    assert {(a, b) for a, b, _ in made.edges()} == {("c", "a.h")}


def test_a_changed_return_reaches_callers_over_another_file(project: Make) -> None:
    files = {
        "a.py": "class A:\n    def go(self): ...\nclass B:\n    def go(self): ...\ndef make():\n    return A()\n",
        "b.py": "from a import make\ndef again():\n    return make()\n",
        "c.py": "from b import again\nagain().go()\n",
    }
    made = project(dict(files))
    assert ("c", "a.A.go") in {(a, b) for a, b, _ in made.edges()}
    made.write({"a.py": files["a.py"].replace("return A()", "return B()")})
    made.index()
    found = {(a, b) for a, b, _ in made.edges()}
    assert ("c", "a.B.go") in found
    assert ("c", "a.A.go") not in found


def test_a_removed_and_a_moved_file(project: Make) -> None:
    made = project({"a.py": "def f(): ...\n", "b.py": "from a import f\nf()\n"})
    (made.root / "a.py").rename(made.root / "z.py")
    assert made.index().removed == 1
    assert made.edges() == set()
    made.write({"a.py": "def f(): ...\n"})
    made.index()
    assert ("b", "a.f", "import") in made.edges()


def test_a_folder_that_becomes_a_package_renames_its_modules(project: Make) -> None:
    made = project({"src/pkg/a.py": "def f(): ...\n", "src/pkg/b.py": "from pkg.a import f\nf()\n"})
    assert made.edges() == set()
    made.write({"src/pkg/__init__.py": ""})
    made.index()
    assert made.edges() == {("pkg.b", "pkg.a.f", "import")}


def test_a_deleted_project_is_reported_and_keeps_its_index(project: Make) -> None:
    made = project({"a.py": "def f(): ...\n"})
    made.root.rename(made.root.with_name("moved"))
    with pytest.raises(InvalidRequestError, match="is not a folder"):
        made.index()
    assert "is not a folder" in str(made.row.problem)
    assert made.row.files == 1
    made.root.with_name("moved").rename(made.root)
    made.index()
    assert made.row.problem is None


def test_a_file_that_vanishes_or_becomes_binary_leaves_the_index(project: Make) -> None:
    made = project({"a.py": "def f(): ...\n", "b.py": "x = 1\n"})
    made.write({"a.py": b"\0binary"})
    done = made.index()
    assert (done.removed, done.walk.left_out, made.row.files) == (1, {"binary": 1}, 1)


def test_files_and_folders_that_change_while_they_are_indexed(project: Make, database: Database) -> None:
    files: dict[str, str | bytes] = {f"m{i:02}.py": f"def f{i}(): ...\nf{i}()\n" for i in range(90)}
    made = project(files)
    made.write({path: f"x = 1\n{text!s}" for path, text in files.items()})

    def change(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("parsing", 40):
            (made.root / "m80.py").unlink()
            (made.root / "m81.py").unlink()
            (made.root / "m81.py").mkdir()

    done = ProjectIndexer(database, made.row, change).run()
    assert (done.parsed, done.removed, done.walk.left_out, made.row.files) == (88, 2, {"unreadable": 2}, 88)
    assert len(made.edges()) == 88


def test_a_project_that_moves_while_it_is_indexed_keeps_its_index(project: Make, database: Database) -> None:
    made = project({f"m{i:02}.py": f"def f{i}(): ...\nf{i}()\n" for i in range(90)})
    made.write({f"m{i:02}.py": f"def g{i}(): ...\ng{i}()\n" for i in range(90)})
    aside = made.root.with_name("moved")

    def move(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("parsing", 40):
            made.root.rename(aside)

    with pytest.raises(InvalidRequestError, match="is not a folder"):
        ProjectIndexer(database, made.row, move).run()
    assert (made.row.files, made.row.problem) == (90, f"{made.root} is not a folder")
    aside.rename(made.root)
    made.index()
    assert made.row.problem is None
    assert {target for _, target, _ in made.edges()} == {f"m{i:02}.g{i}" for i in range(90)}


def test_content_that_is_no_text_for_people(project: Make) -> None:
    made = project(
        {
            "long.py": b"x = '" + b"y" * 2_000_000 + b"'\n",
            "latin.py": "def f(): return 'h\u00e9'\nf()\n".encode("latin-1"),
            "deep.js": "f(a =>\n" * 2000 + "0" + ")" * 2000 + "\n",
            "chain.py": "x = \\\n" * 2000 + "1\n",
        }
    )
    assert made.index().walk.left_out == {"over 1 MB": 1}
    assert made.row.files == 3
    assert ("latin", "latin.f", "same file") in made.edges()


def test_form_feeds_and_other_separators_end_no_line(project: Make, database: Database) -> None:
    made = project(
        {
            "a.py": "import os\r\n\x0c\r\ndef one(): ...\r\nX = 'a\u2028b'\r\n\x0c\r\ndef two():\r\n    one()\r\n",
            "a.md": "# Title\n\x0c\n## Second\n\nText.\n",
        }
    )
    found = database.read_sync(lambda c: queries.search(c, made.id, "two", 9))
    assert [lines_of(made.root, hit.path, hit.line, hit.end_line) for hit in found] == [
        ["def two():", "    one()"]
    ]
    (use,) = database.read_sync(lambda c: queries.callers(c, made.id, "one")).confirmed
    assert lines_of(made.root, use.path, use.line, use.line) == ["    one()"]
    (section,) = database.read_sync(lambda c: queries.search(c, made.id, "second", 9))
    assert lines_of(made.root, section.path, section.line, section.end_line)[0] == "## Second"


def test_frequent_words_rank_what_rarer_ones_find(
    project: Make, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(
        {
            "near.md": "# Near\n\nThe kestrel of the gateway.\n",
            "far.md": "# Far\n\nThe kestrel.\n",
            **{f"{at}.md": f"# Part {at}\n\nA {'gateway' if at % 5 == 0 else 'door'}.\n" for at in range(20)},
        }
    )
    monkeypatch.setattr(graph, "_TEXT_ROWS", 3)
    found = database.read_sync(lambda c: queries.by_words(c, made.id, "kestrel gateway", 9))
    assert [hit.path for hit in found] == ["near.md", "far.md"]
    monkeypatch.setattr(graph, "_FEW", 0)
    found = database.read_sync(lambda c: queries.by_words(c, made.id, "kestrel gateway", 9))
    assert [hit.path for hit in found] == ["far.md", "near.md"]


def test_one_project_inside_another_are_two(database: Database, project: Make) -> None:
    outer = project({"a.py": "def f(): ...\n", "inner/b.py": "def g(): ...\n"})
    inner = Indexable(database, outer.root / "inner")
    inner.index()
    assert (outer.row.files, inner.row.files) == (2, 1)
    database.write_sync(lambda c: remove_project(c, outer.id))
    assert [each.name for each in database.read_sync(list_projects)] == ["inner"]
    assert inner.row.definitions == 1


def test_projects_are_found_by_id_and_name_and_folders_are_not_disclosed(
    database: Database, tmp_path: Path
) -> None:
    made = database.write_sync(lambda c: add_project(c, str(tmp_path), "x", ["a/**"], docs=True))
    for which in (made.id, "x"):
        assert database.read_sync(lambda c, which=which: project_of(c, which)) == made  # type: ignore[misc]
    with pytest.raises(NotFoundError):
        database.read_sync(lambda c: project_of(c, made.path))
    database.write_sync(lambda c: remove_project(c, made.id))
    again = database.write_sync(lambda c: add_project(c, str(tmp_path), "x", ["a/**"], docs=True))
    assert again.id != made.id, "an id computed from the path would tell who guesses it"
    with pytest.raises(InvalidRequestError, match="choose another with --name"):
        database.write_sync(lambda c: add_project(c, "/elsewhere", "x", [], docs=False))


@pytest.mark.parametrize("when", ["parsing", "resolving", "following arguments"])
def test_killed_in_the_middle_it_goes_on_and_nothing_is_twice(
    project: Make, database: Database, when: str
) -> None:
    files = {
        f"m{i}.py": f"import m{(i + 1) % 90} as other\ndef f{i}(then):\n    then()\ndef g{i}(): ...\n"
        f"other.f{(i + 1) % 90}(g{i})\n"
        for i in range(90)
    }
    made = project({})
    made.write(dict(files))
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom gateway.code.index import ProjectIndexer\n"
        "from gateway.store.code.projects import project_of\nfrom gateway.store.db import Database\n"
        "database = Database(Path(sys.argv[1]))\ndatabase.open()\n"
        "def progress(stage, done, total):\n"
        "    if stage == sys.argv[3] and done >= 40:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "ProjectIndexer(database, database.read_sync(lambda c: project_of(c, sys.argv[2])), progress).run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(database.path), made.id, when], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    made.index()
    resumed = made.edges()
    assert ("m1.f1", "m0.g0", "flow") in resumed
    assert len(resumed) == 180
    database.write_sync(lambda c: remove_project(c, made.id))
    again = Indexable(database, made.root).indexed()
    assert again.edges() == resumed
    assert again.index().resolved == 0, "nothing is left to do"


def test_an_index_of_an_older_hearth_is_made_again(project: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = project({"a.py": "def f(): ...\nf()\n", "n.md": "# Notes\n"})
    for module in ("index", "reading"):
        monkeypatch.setattr(f"gateway.code.{module}.VERSION", VERSION + 1)
    assert (made.index().parsed, made.index().parsed) == (2, 0)
    assert made.edges() == {("a", "a.f", "same file")}


def test_two_processes_index_one_project(project: Make, database: Database) -> None:
    made = project({})
    made.write({f"m{i}.py": f"def f{i}(): ...\nf{i}()\n" for i in range(200)})
    command = [sys.executable, "-m", "gateway.cli.main", "context", "refresh", made.id]
    both = [
        subprocess.Popen([*command, "--data-dir", str(database.path.parent)], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0)] * 2
    assert (made.row.files, len(made.edges()), made.index().parsed) == (200, 200, 0)


def test_a_thousand_changed_files_at_once(project: Make, database: Database) -> None:
    made = project({f"m{i}.py": f"def f{i}(): ...\nf{i}()\n" for i in range(1000)})
    made.write({f"m{i}.py": f"def g{i}(): ...\ng{i}()\n" for i in range(1000)})
    done = made.index()
    assert (done.parsed, done.resolved) == (1000, 1000)
    assert len(made.edges()) == 1000
    segments = "SELECT count(DISTINCT segid) FROM code_text_idx"
    assert database.read_sync(lambda c: c.execute(segments).fetchall()) == [(1,)]


def test_a_variable_that_comes_moves_and_goes(project: Make, database: Database) -> None:
    made = project({"a.py": "from b import LIMIT\n\ndef use():\n    show(LIMIT)\n", "b.py": "x = 1\n"})

    def used() -> list[int]:
        return [use.line for use in database.read_sync(lambda c: references(c, made.id, "LIMIT")).confirmed]

    with pytest.raises(NotFoundError):
        used()
    made.write({"b.py": "def first(): ...\n\nLIMIT = 1\n"})
    made.index()
    assert used() == [1, 4]
    made.write({"b.py": "LIMIT = 1\n\ndef first(): ...\ndef second(): ...\n"})
    made.index()
    assert used() == [1, 4]
    made.write({"b.py": "x = 1\n"})
    made.index()
    with pytest.raises(NotFoundError):
        used()


def test_known_files_are_indexed_without_looking_at_the_others(project: Make, database: Database) -> None:
    made = project({"a.py": "def f(): ...\n", "b.py": "import a\na.f()\n", "c.py": "", "notes.md": "# A\n"})
    made.write({"a.py": "def g(): ...\n", "b.py": "import a\na.g()\n", "new.py": "import a\na.g()\n"})
    (made.root / "c.py").unlink()
    indexer = ProjectIndexer(database, made.row)
    for unknown in ({"a.py", "new.py"}, {"a.py", "c.py"}, {"a.py", ".gitignore"}):
        indexer.run_for(unknown)
        assert made.edges() == {("b", "a.f", "import")}, "only a walk can tell"
    indexer.run_for({"a.py", "b.py"})
    assert made.edges() == {("b", "a.g", "import")}
    assert made.row.files == 4, "what has vanished is left to a walk"
    (made.root / "a.py").unlink()
    (made.root / "a.py").symlink_to("b.py")
    indexer.run_for({"a.py"})
    assert made.edges() == {("b", "a.g", "import")}, "a link is not read"
    done = made.index()
    assert (done.parsed, done.removed, made.row.files) == (1, 2, 3)
