"""The watcher: changes are indexed while the server runs, an idle one does nothing, and trouble is reported."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.base.supervised import Supervision
from gateway.code import watch
from gateway.code.watch import ProjectWatcher, _explained, touch_registry
from gateway.store.code.projects import CodeProject, list_projects, remove_project
from tests.gateway.code.conftest import Indexable, Make
from tests.waiting import until

FIRST = {"a.py": "def f(): ...\n", "b.py": "from a import f\nf()\n"}


@pytest.fixture
async def watched(project: Make) -> AsyncIterator[tuple[Indexable, Supervision]]:
    made, supervision = project(dict(FIRST)), Supervision()
    watcher = ProjectWatcher(made.database, made.database.path.parent)
    watcher.start(supervision)
    # It is watching once it has indexed what changed before: that is seen by a file of its own.
    made.write({"begin.py": "def begin(): ...\n"})
    await until(lambda: made.row.files == 3)
    yield made, supervision
    await watcher.close()


async def test_changed_new_and_removed_files_and_folders(watched: tuple[Indexable, Supervision]) -> None:
    made, _ = watched
    made.write({"a.py": "def g(): ...\ng()\n"})
    await until(lambda: made.edges() == {("a", "a.g", "same file")})
    made.write({"new/folder/c.py": "def h(): ...\nh()\n"})
    await until(lambda: ("new.folder.c", "new.folder.c.h", "same file") in made.edges())
    made.write({"new/folder/d.py": "def i(): ...\ni()\n"})
    await until(lambda: ("new.folder.d", "new.folder.d.i", "same file") in made.edges())
    shutil.rmtree(made.root / "new")
    await until(lambda: made.row.files == 3)
    made.write({".gitignore": "begin.py\n"})
    await until(lambda: made.row.files == 2)


async def test_the_text_index_is_merged_when_nothing_changes_more(
    watched: tuple[Indexable, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = watched
    monkeypatch.setattr(watch, "_QUIET_SECONDS", 0.5)

    def segments() -> int:
        count = "SELECT count(DISTINCT segid) FROM code_text_idx"
        return int(made.database.read_sync(lambda c: c.execute(count).get))

    for name in ("f", "g"):
        made.write({"a.py": f"def {name}(): ...\n{name}()\n"})
        await until(lambda name=name: ("a", f"a.{name}", "same file") in made.edges())  # type: ignore[misc]
    assert segments() > 1
    await until(lambda: segments() == 1)


async def test_a_checkout_is_indexed_at_once(watched: tuple[Indexable, Supervision]) -> None:
    made, supervision = watched
    made.write({f"m{i}.py": f"def f{i}(): ...\nf{i}()\n" for i in range(200)})
    await until(lambda: made.row.files == 203)
    assert [task.problem for task in supervision.health()] == [None]


async def test_a_project_that_moves_away_and_comes_back(watched: tuple[Indexable, Supervision]) -> None:
    made, _ = watched
    aside = made.root.with_name("aside")
    made.root.rename(aside)
    await until(lambda: made.row.problem is not None)
    aside.rename(made.root)
    await until(lambda: made.row.problem is None)
    made.write({"a.py": "def back(): ...\nback()\n"})
    await until(lambda: ("a", "a.back", "same file") in made.edges())


async def test_a_project_that_is_back_before_the_watcher_has_noticed(
    watched: tuple[Indexable, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = watched
    aside, index = made.root.with_name("aside"), ProjectWatcher._index

    async def moved_back(self: ProjectWatcher, row: CodeProject, *, many: bool) -> bool:
        indexed = await index(self, row, many=many)
        if aside.exists():
            assert made.row.problem is not None
            aside.rename(made.root)
        return indexed

    monkeypatch.setattr(ProjectWatcher, "_index", moved_back)
    made.root.rename(aside)
    await until(lambda: not aside.exists())
    await until(lambda: made.row.problem is None, seconds=30)


async def test_the_registry_is_followed(watched: tuple[Indexable, Supervision], tmp_path: Path) -> None:
    made, _ = watched
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.py").write_text("def x(): ...\n")
    second = Indexable(made.database, other)
    touch_registry(made.database.path.parent)
    await until(lambda: second.row.files == 1)
    made.database.write_sync(lambda c: remove_project(c, second.id))
    touch_registry(made.database.path.parent)
    made.write({"a.py": "def after(): ...\nafter()\n"})
    await until(lambda: ("a", "a.after", "same file") in made.edges())
    assert len(made.database.read_sync(list_projects)) == 1


async def test_a_small_change_does_not_wait_for_a_large_project(
    project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = project({f"m{i}.py": f"def f{i}(): ...\n" for i in range(30)}, "a-large-one")
    small = project({"a.py": "def f(): ...\n"}, "small")
    # Both have changed while no watcher ran.
    large.write({f"m{i}.py": f"def g{i}(): ...\ng{i}()\n" for i in range(30)})
    small.write({"a.py": "def g(): ...\ng()\n"})
    order: list[tuple[str, bool]] = []
    index = ProjectWatcher._index

    async def noted(self: ProjectWatcher, row: CodeProject, *, many: bool) -> bool:
        order.append((row.name, many))
        return await index(self, row, many=many)

    monkeypatch.setattr(ProjectWatcher, "_index", noted)
    supervision = Supervision()
    watcher = ProjectWatcher(large.database, large.database.path.parent)
    watcher.start(supervision)
    await until(lambda: ("m29", "m29.g29", "same file") in large.edges())
    assert ("a", "a.g", "same file") in small.edges()
    assert order[:2] == [("small", False), ("a-large-one", True)], "the small one without another process"
    await watcher.close()


def test_the_limit_of_watches_is_explained() -> None:
    error = _explained(OSError("OS file watch limit reached."), 9000)
    assert "fs.inotify.max_user_watches" in error.message
    assert "9000" in error.message
