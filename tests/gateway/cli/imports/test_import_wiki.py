"""The command as users run it: reports, exit statuses, kills, downloads."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from gateway.base.resources import sample_wiki
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.wiki.dumps.sample import load_sample
from gateway.wiki.local import LocalWiki
from tests.gateway.cli.conftest import COMMAND, Run
from tests.gateway.cli.imports.dump_server import FileServer, serving
from tests.gateway.wiki.dumps.export import HEAD, TAIL, export, page
from tests.waiting import PATIENCE, eventually


def write(path: Path, *pages: str) -> str:
    path.write_bytes(export(*pages))
    return str(path)


def many(count: int, words: int = 60) -> list[str]:
    return [page(f"P{n}", " ".join(f"w{n * k % 991}" for k in range(words)), n + 1) for n in range(count)]


def test_the_report_and_the_second_time(hearth: Run, tmp_path: Path) -> None:
    broken = "<page><title>Broken</title><ns>0</ns></page>"
    pages = [page("A", "a"), page("B", redirect="A"), page("Talk:A", "t", namespace=1), broken]
    file = write(tmp_path / "d.xml", *pages)
    done = hearth("import-wiki", file)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Test wiki: 4 pages read in ")
    told = [line.split(maxsplit=1) for line in lines[1:]]
    assert ["added", "1"] in told and ["redirects", "1, 1 of them new or changed"] in told
    assert lines[-1] == "failed: Broken: it has no revision"
    assert "page_url" not in done.stderr  # the export says where the wiki is
    other = hearth("import-wiki", file, HEARTH_WIKI__PAGE_URL="https://other.test/{title}")
    assert "https://wiki.test/wiki/{title}: remove the setting" in other.stderr
    again = hearth("import-wiki", file, "--json")
    report = json.loads(again.stdout)
    assert again.stderr == "" and report["seconds"] >= 0 and report["site"]["dbname"] == "test"
    assert {name: report["counts"][name] for name in ("added", "unchanged", "redirects", "failed")} == {
        "added": 0,
        "unchanged": 1,
        "redirects": 1,
        "failed": 1,
    }
    quiet = hearth("import-wiki", file, "--quiet", "--namespace", "0", "--namespace", "1")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"words", "this is not XML"),
        ((HEAD + page("A", "a")).encode(), "ends early, after 1 page, the last one `A`"),
        (b'<!DOCTYPE x [<!ENTITY y "z">]><mediawiki/>', "document type declaration"),
        ((HEAD + page("A", "a") + "</oops>").encode(), "the XML is damaged after 1 page, the last one `A`"),
        (b"", "the file is empty"),
    ],
)
def test_unusable_files_are_one_line_and_status_1(
    hearth: Run, tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "d.xml").write_bytes(content)
    done = hearth("import-wiki", "d.xml")
    assert done.returncode == 1 and done.stdout == ""
    assert message in done.stderr and done.stderr.startswith("hearth: d.xml: ")
    assert done.stderr.count("\n") == 1
    assert ("what came before is stored" in done.stderr) == (b"<page>" in content)


def test_other_failures(hearth: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "d.xml", page("A", "a"))
    assert hearth("import-wiki").returncode == 2
    missing = hearth("import-wiki", "nothing.xml")
    assert missing.returncode == 1 and missing.stderr.startswith("hearth: nothing.xml: there is no such file")
    assert hearth("import-wiki", file, "--namespace", "9").returncode == 1
    (tmp_path / "data" / "hearth.db").unlink()
    (tmp_path / "data" / "hearth.db").write_bytes(b"no database at all" * 1000)
    assert hearth("import-wiki", file).returncode == 78


async def test_the_sample_makes_room_and_stays_away(hearth: Run, tmp_path: Path, database: Database) -> None:
    await load_sample(database, sample_wiki())
    done = hearth("import-wiki", write(tmp_path / "d.xml", page("Real", "x")))
    assert "the built-in sample wiki (" in done.stderr and "is not loaded again" in done.stderr
    assert await load_sample(database, sample_wiki()) == 0
    assert await database.read(store.count_pages) == 1


def started(environment: dict[str, str], tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "import-wiki", *arguments],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_pages(database: Database, count: int, process: subprocess.Popen[str]) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = database.read_sync(store.count_pages)
        if found >= count:
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    raise AssertionError("the import stores nothing")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle_it_goes_on(
    environment: dict[str, str], tmp_path: Path, database: Database, hearth: Run, how: signal.Signals
) -> None:
    file = write(tmp_path / "d.xml", *many(6000))
    process = started(environment, tmp_path, file)
    wait_for_pages(database, 300, process)
    process.send_signal(how)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-9 if how == signal.SIGKILL else 130)
    assert ("run the same command to resume" in stderr) == (how == signal.SIGINT)
    stored = database.read_sync(store.count_pages)
    assert 300 <= stored < 6000
    report = json.loads(hearth("import-wiki", file, "--json").stdout)
    assert report["resumed_after"] == stored
    assert (report["counts"]["added"], report["counts"]["unchanged"]) == (6000, 0)
    assert database.read_sync(store.count_pages) == 6000
    check = "INSERT INTO wiki_text (wiki_text) VALUES ('integrity-check')"
    database.write_sync(lambda connection: connection.execute(check) and None)


async def test_a_server_answers_and_writes_while_an_import_runs(
    environment: dict[str, str], tmp_path: Path, database: Database
) -> None:
    process = started(environment, tmp_path, write(tmp_path / "d.xml", *many(5000)), "--quiet")
    wait_for_pages(database, 1, process)
    wiki, searched = LocalWiki(database, WikiSettings()), 0

    def note(connection: apsw.Connection) -> None:
        store.set_state(connection, "server", str(searched))

    while process.poll() is None:
        assert (await wiki.fetch("P0")).title == "P0"
        await wiki.search_text("w3 w7", 3)
        await database.write(note)  # fails when the lock is held for as long as the busy timeout
        searched += 1
    assert process.returncode == 0 and searched
    process.communicate()


def test_one_import_at_a_time(
    environment: dict[str, str], tmp_path: Path, database: Database, hearth: Run
) -> None:
    file = write(tmp_path / "d.xml", *many(6000))
    process = started(environment, tmp_path, file)
    wait_for_pages(database, 1, process)
    second = hearth("import-wiki", file)
    assert second.returncode == 75 and "another `hearth import-wiki` is using" in second.stderr
    process.kill()
    process.communicate()


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serving(FileServer(export(*many(400)))) as served:
        yield served


def test_a_download_is_imported_and_cleared_away(hearth: Run, tmp_path: Path, files: FileServer) -> None:
    files.cut_after = [20_000]
    broken = hearth("import-wiki", files.url + "/dump.xml")
    assert broken.returncode == 75 and "run the same command to resume" in broken.stderr
    done = hearth("import-wiki", files.url + "/dump.xml")
    assert done.returncode == 0 and "resuming the download at 20.0 kB" in done.stderr
    assert files.statuses == [200, 206]
    assert [path.name for path in (tmp_path / "data" / "imports").iterdir()] == ["lock"]
    files.data = b"<html>not here</html>"
    files.etag = '"v2"'
    assert hearth("import-wiki", files.url + "/dump.xml").returncode == 1
    assert [path.name for path in (tmp_path / "data" / "imports").iterdir()] == ["lock"]


def test_a_download_that_was_killed_goes_on(
    environment: dict[str, str], tmp_path: Path, files: FileServer, hearth: Run
) -> None:
    files.hold = threading.Event()
    process = started(environment, tmp_path, files.url + "/dump.xml")
    assert files.halfway.wait(PATIENCE)
    folder = tmp_path / "data" / "imports"
    eventually(
        lambda: any(path.stat().st_size > 8192 for path in folder.glob("*.download")), "nothing arrives"
    )
    process.kill()
    process.communicate()
    files.hold.set()
    files.hold = None
    report = json.loads(hearth("import-wiki", files.url + "/dump.xml", "--json").stdout)
    assert report["counts"]["added"] == 400 and files.statuses[-1] == 206


def peak_of_import(environment: dict[str, str], tmp_path: Path, pages: int) -> int:
    """Peak resident memory in kB of an import whose pages are written as they are made."""
    file = tmp_path / f"{pages}.xml"
    with file.open("w") as out:
        out.write(HEAD)
        for number in range(pages):
            out.write(page(f"P{number}", " ".join(f"w{number * k % 9973}" for k in range(80)), number + 1))
        out.write(TAIL)
    # VmHWM begins anew with the program; ru_maxrss would begin with the size of this test run.
    script = (
        "import re, sys; from gateway.cli.main import run; status = run(sys.argv[1:]); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [COMMAND[0], "-c", script, "import-wiki", "--json", str(file)],
        env={**environment, "HEARTH_DATA_DIR": str(tmp_path / f"data-{pages}")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stderr.splitlines()[-1])


@pytest.mark.soak
def test_memory_does_not_grow_with_the_dump(environment: dict[str, str], tmp_path: Path) -> None:
    few = peak_of_import(environment, tmp_path, 2_000)
    many_more = peak_of_import(environment, tmp_path, 20_000)
    assert many_more < few + 40_000 and many_more < 200_000, (few, many_more)
