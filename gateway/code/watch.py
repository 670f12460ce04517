"""Watches all projects and indexes what changes: one watcher, with one inotify watch for each indexed folder.

An idle watcher reads and writes nothing. Commands that change the registry touch a file that is watched as well. Many
changes at once, such as a checkout, are indexed in a process of their own: they would slow the event loop down.
Projects with few changes come first.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import structlog
from watchfiles._rust_notify import RustNotify

from gateway.base.errors import HearthError
from gateway.base.private import make_private
from gateway.base.supervised import Supervised, Supervision
from gateway.code.index import ProjectIndexer, merge_index
from gateway.code.languages.parse import language_of
from gateway.code.walk import walk
from gateway.store.code.projects import CodeProject, list_projects
from gateway.store.db import Database

_STEP_MS = 150  # between looks at collected events; events that follow each other closer are taken together
_DEBOUNCE_MS = 1000  # at most
_LONGEST_WAIT_MS = 600_000
_MANY = 20  # changed paths
_QUIET_SECONDS = (
    120.0  # after changes, until the text index is merged: some 10 MB are written for a large project
)

log = structlog.get_logger(__name__)

Changes = set[str]  # paths


def touch_registry(data_dir: Path) -> None:
    """Tell a running server that the registry has changed."""
    make_private(data_dir / "projects")
    (data_dir / "projects" / "changed").touch()


class ProjectWatcher:
    """Keeps the index of all registered projects up to date while the server runs."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self._database, self._data_dir = database, data_dir
        self._task: Supervised | None = None

    def start(self, supervision: Supervision) -> None:
        self._task = supervision.start("project-watcher", self._run)

    async def close(self) -> None:
        if self._task is not None:
            await self._task.close()

    async def _run(self) -> None:
        touched = self._data_dir / "projects"
        await asyncio.to_thread(make_private, touched)
        while True:
            found = await self._database.read(list_projects)
            folders = {project.id: await asyncio.to_thread(_folders, project) for project in found}
            watched = {str(touched), *(folder for each in folders.values() for folder in each)}
            async with _watching(watched) as events:
                # Changes from here on are reported. Earlier ones are found by indexing everything once.
                waiting = {each.id: await asyncio.to_thread(self._waiting, each) for each in found}
                for project in sorted(found, key=lambda each: waiting[each.id]):
                    if waiting[project.id]:
                        await self._index(project, many=waiting[project.id] > _MANY)
                if all([await asyncio.to_thread(_folders, each) == folders[each.id] for each in found]):
                    await self._follow(events, found, folders, str(touched))

    async def _follow(
        self,
        events: asyncio.Queue[Changes | Exception],
        found: list[CodeProject],
        folders: dict[str, set[str]],
        touched: str,
    ) -> None:
        """Index changes until the set of watched folders changes. Merge the text index once changes stop."""
        unmerged = True  # what was indexed at the start
        while True:
            try:
                async with asyncio.timeout(_QUIET_SECONDS if unmerged else None):
                    paths = await events.get()
            except TimeoutError:
                await asyncio.to_thread(merge_index, self._database)
                unmerged = False
                continue
            unmerged = True
            if isinstance(paths, Exception):
                raise _explained(paths, sum(map(len, folders.values()))) from paths
            if any(Path(path).parent == Path(touched) for path in paths):
                return
            changed = [
                (project, [path for path in paths if Path(path).is_relative_to(project.path)])
                for project in found
            ]
            for project, inside in sorted(changed, key=lambda each: len(each[1])):
                if inside or not await asyncio.to_thread(Path(project.path).is_dir):
                    if len(inside) <= _MANY:
                        await self._index_first(project, inside)
                    indexed = await self._index(project, many=len(inside) > _MANY)
                    # A folder that was gone may be back by now: without its watches, its problem still noted.
                    if not indexed or await asyncio.to_thread(_folders, project) != folders[project.id]:
                        return

    def _waiting(self, project: CodeProject) -> int:
        try:
            return ProjectIndexer(self._database, project).waiting()
        except HearthError:
            return 1  # the run notes the problem

    async def _index_first(self, project: CodeProject, paths: Collection[str]) -> None:
        """Index files that have changed before the whole project is compared, which takes longer than a few files."""
        inside = {Path(path).relative_to(project.path).as_posix() for path in paths}
        with suppress(HearthError):  # comparing the project meets it again
            await asyncio.to_thread(ProjectIndexer(self._database, project).run_for, inside)

    async def _index(self, project: CodeProject, *, many: bool) -> bool:
        """Index one project, and whether it was; a folder that is gone or unreadable is noted in the registry."""
        try:
            if many:
                await self._refresh(project)
            else:
                await asyncio.to_thread(ProjectIndexer(self._database, project).run)
        except HearthError as error:
            log.warning("a project could not be indexed", project=project.name, problem=error.message)
            return False
        return True

    async def _refresh(self, project: CodeProject) -> None:
        command = ["context", "refresh", project.id, "--data-dir", str(self._data_dir)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway.cli.main", *command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
        )
        try:
            _, output = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        if process.returncode:
            lines = output.decode("utf-8", "replace").strip().splitlines()
            raise HearthError(lines[-1] if lines else f"indexing ended with status {process.returncode}")


def _folders(project: CodeProject) -> set[str]:
    """The folders of a project to watch; of one that is gone, the nearest one above, where it may come back."""
    root = Path(project.path)
    try:
        return {str(root / folder) for folder in walk(root, project.excludes, docs=project.docs).folders}
    except HearthError:
        return {str(next(parent for parent in root.parents if parent.is_dir()))}


def _matters(path: str) -> bool:
    """Whether a change may concern an index: files that are indexed, folders, and what decides about them."""
    name = path.rpartition("/")[2]
    return language_of(name) is not None or name == ".gitignore" or "." not in name or Path(path).is_dir()


def _explained(error: Exception, folders: int) -> HearthError:
    text = str(error)
    if "limit" in text or "No space left" in text or "Too many open files" in text:
        return HearthError(
            f"the system's limit of inotify watches does not allow {folders} more: raise fs.inotify.max_user_watches "
            "and fs.inotify.max_user_instances with sysctl, or run `hearth context refresh` after changes"
        )
    return HearthError(f"the projects' folders cannot be watched: {text}")


@asynccontextmanager
async def _watching(paths: Collection[str]) -> AsyncIterator[asyncio.Queue[Changes | Exception]]:
    """Paths that change in these folders, from the moment of entering on; an error is the last item.

    Raises HearthError.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()
    events: asyncio.Queue[Changes | Exception] = asyncio.Queue()
    try:
        notify = await asyncio.to_thread(RustNotify, sorted(paths), False, False, 0, False, True)
    except OSError as error:
        raise _explained(error, len(paths)) from error

    def put(item: Changes | Exception) -> None:
        if not stop.is_set():
            loop.call_soon_threadsafe(events.put_nowait, item)

    def follow() -> None:
        try:
            while not stop.is_set():
                changes = notify.watch(_DEBOUNCE_MS, _STEP_MS, _LONGEST_WAIT_MS, stop)
                if isinstance(changes, set) and (kept := {path for _, path in changes if _matters(path)}):
                    put(kept)
        except Exception as error:
            put(error)

    thread = threading.Thread(target=follow, name="project-watcher", daemon=True)
    thread.start()
    try:
        yield events
    finally:
        stop.set()
        await asyncio.to_thread(thread.join)
        notify.close()
