"""What the program writes is its owner's alone, whatever the umask; a data directory that is not gets a warning."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.gateway.cli.conftest import COMMAND
from tests.gateway.cli.hub.hub_server import Hub
from tests.gateway.wiki.dumps.export import export, page
from tests.waiting import PATIENCE, eventually


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder that everybody may look into, as /srv is; the data directory is two levels below it."""
    folder = tmp_path / "srv"
    folder.mkdir(mode=0o755)
    return folder


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command with the umask that most accounts have."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        umask=0o022,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in (0, 78), done.stderr
    return done


def readable_by_others(base: Path) -> list[str]:
    return [str(path) for path in base.rglob("*") if stat.S_IMODE(path.lstat().st_mode) & 0o077]


@pytest.mark.parametrize("command", ["key", "import-wiki", "pull", "start", "eval"])
def test_every_command_makes_the_data_directory_for_its_owner_alone(
    environment: dict[str, str], base: Path, tmp_path: Path, hub: Hub, command: str
) -> None:
    data = base / "site/data"
    environment = {**environment, "HEARTH_DATA_DIR": str(data), "HF_ENDPOINT": hub.url}
    dump = tmp_path / "dump.xml"
    dump.write_bytes(export(page("A", "a")))
    arguments = {
        "key": ["key", "create", "me"],
        "import-wiki": ["import-wiki", str(dump)],
        "pull": ["pull", "owner/repo:model.gguf"],
        "start": ["start", "--host", "0.0.0.0", "--port", "0"],  # refused when all is open: there is no key
        "eval": ["eval", "--terms", "question", "--limit", "1", "--data-dir", str(data)],
    }[command]
    run(environment, *arguments)
    assert len(list(data.rglob("*"))) >= 1
    assert readable_by_others(base) == []


def test_nothing_that_a_server_and_its_commands_write_is_readable_by_others(
    environment: dict[str, str], base: Path, tiny_model: Path
) -> None:
    data, out = base / "data", base / "out"
    out.mkdir(mode=0o700)
    environment = {
        **environment,
        "HEARTH_DATA_DIR": str(data),
        "HEARTH_MODEL__THREADS": "0",
        "HEARTH_MODEL__SNAPSHOT_AFTER_SECONDS": "0",
    }
    started = run(environment, "start", "--detach", "--port", "0", "--model", str(tiny_model))
    url = started.stdout.split()[2]
    try:
        with httpx2.Client(base_url=url, timeout=PATIENCE) as client:
            talk = client.post("/v1/conversations", json={}).json()["id"]
            said = {"text": "Where is Befunge from?" * 20, "max_tokens": 8}
            assert client.post(f"/v1/conversations/{talk}/messages", json=said).status_code == 200
            assert client.post("/ask", json={"question": "Who created Befunge?"}).status_code == 200
        eventually(lambda: [*data.glob("snapshots/*/*")], "no snapshot was written")
        run(environment, "export", str(out / "export.jsonl"))
        run(environment, "export", "--documents", str(out / "documents"))
        run(environment, "backup", str(out / "copy.db"))
        names = {path.name for path in data.iterdir()}
        assert {
            "hearth.db",
            "hearth.db-wal",
            "hearth.log",
            "run.lock",
            "snapshots",
        } <= names  # and `threads`, unless busy cores kept the host from measuring
        assert {"export.jsonl", "copy.db", "Daily_chat.json", "chat_log.json"} <= {
            p.name for p in out.rglob("*")
        }
        assert readable_by_others(base) == []
        assert "open to other accounts" not in (data / "hearth.log").read_text()
    finally:
        run(environment, "stop")


def test_a_data_directory_that_others_can_read_is_named(
    environment: dict[str, str], base: Path, tiny_model: Path
) -> None:
    environment = {**environment, "HEARTH_DATA_DIR": str(base)}
    words = f"{base} is open to other accounts (mode 0755): chmod -R go= {base}"
    assert f"warning: {words}\n" in run(environment, "doctor").stdout
    assert json.loads(run(environment, "doctor", "--json").stdout)["data_dir_problem"] == words
    run(environment, "start", "--detach", "--port", "0", "--model", str(tiny_model))
    run(environment, "stop")
    assert words in (base / "hearth.log").read_text()
    base.chmod(0o700)
    assert "open to other accounts" not in run(environment, "doctor").stdout
