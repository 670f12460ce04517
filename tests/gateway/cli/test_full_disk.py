"""A disk that is full: said in one line that names it, status 75, and nothing half-written stays."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import apsw
import pytest

from gateway.base.errors import HearthError
from gateway.store.faults import translated
from tests.gateway.cli.conftest import COMMAND, Run
from tests.waiting import PATIENCE


@pytest.fixture
def mount() -> str:
    """A shell line that puts a small, full disk at ``$small``, in a namespace of its own."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a mount namespace")
    return (
        "mkdir -p $small && mount -t tmpfs -o size=1m tmpfs $small && "
        "head -c 1008K /dev/zero > $small/filler || exit 99"
    )


def on_a_full_disk(
    mount: str, environment: dict[str, str], small: Path, *commands: str
) -> list[tuple[int, str, list[str]]]:
    """Status and standard error of each command, and the files on the small disk afterwards."""
    found = []
    for command in commands:
        script = f"small={small}; {mount}; {shlex.join(COMMAND)} {command}; status=$?; cd $small; "
        script += "find . -type f ! -name filler -size +0 -o -name '*.partial' > $OUT; exit $status"
        listing = small.with_suffix(".txt")
        done = subprocess.run(
            ["unshare", "-rm", "bash", "-c", script],
            env={**environment, "OUT": str(listing)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        found.append((done.returncode, done.stderr, listing.read_text().split()))
    return found


def test_what_is_written_to_a_full_disk_is_whole_or_not_there(
    hearth: Run, environment: dict[str, str], mount: str, tmp_path: Path
) -> None:
    lines = [f'{{"role": "user", "content": "{number} {"word " * 200}"}}' for number in range(400)]
    (tmp_path / "chat.json").write_text(f'[{{"messages": [{", ".join(lines)}]}}]')
    assert hearth("import", str(tmp_path / "chat.json")).returncode == 0
    small = tmp_path / "small"
    backup, export, documents, run = on_a_full_disk(
        mount,
        environment,
        small,
        f"backup {small}/b.db",
        f"export {small}/e.jsonl",
        f"export --documents {small}",
        f"eval --terms question --limit 40 --out {small}/run.json",
    )
    assert backup == (
        75,
        f"hearth: no space left for the database {small}/.b.db.partial: free some disk space\n",
        [],
    )
    assert export == (75, f"hearth: {small}/e.jsonl cannot be written: No space left on device\n", [])
    assert documents == (
        75,
        f"hearth: {small}/Daily_chat.json cannot be written: No space left on device\n",
        [],
    )
    assert (run[0], f"cannot write the run to {small}/run.json: No space left" in run[1]) == (75, True), run[
        1
    ]
    assert run[2] in ([], ["./run.json"]), "what was kept before"


def test_commands_with_their_data_on_a_full_disk(
    environment: dict[str, str], mount: str, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    environment = {**environment, "HEARTH_DATA_DIR": str(small)}
    mount = mount.replace("1008K", "1023K")
    key, start, detached = on_a_full_disk(
        mount, environment, small, "key create me", "start --port 0", "start --port 0 --detach"
    )
    assert key[:2] == (
        75,
        f"hearth: no space left for the database {small}/hearth.db: free some disk space\n",
    )
    assert start[0] == 75 and start[1].startswith("hearth: ") and start[1].count("\n") == 1
    assert detached[0] == 75 and "is the disk full? `hearth start` shows more" in detached[1]


def test_doctor_finds_a_data_directory_that_cannot_be_written(
    environment: dict[str, str], mount: str, tmp_path: Path
) -> None:
    environment = {**environment, "HEARTH_DATA_DIR": str(tmp_path / "small")}
    writable = mount.replace("1008K", "8K")
    for each, status in ((writable, 0), (f"{writable} && mount -o remount,ro $small", 78)):
        assert on_a_full_disk(each, environment, tmp_path / "small", "doctor")[0][0] == status


def test_an_index_of_the_log_that_cannot_grow_is_a_full_disk() -> None:
    """SQLite calls it a failure of the disk."""
    with pytest.raises(HearthError, match="no space left") as caught, translated(Path("x.db")):
        raise apsw.exception_for(apsw.SQLITE_IOERR_SHMSIZE)
    assert caught.value.code == "disk_full"
