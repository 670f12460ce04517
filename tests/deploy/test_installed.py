"""The service as docs/operations.md installs it, on a machine run by the real systemd."""

from __future__ import annotations

import json
import re
import signal
import socket
import textwrap
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.clients.irc.ircd import Ngircd
from tests.clients.irc.person import person
from tests.conftest import ROOT
from tests.deploy.booted import LIBRARIES, Booted, booted
from tests.waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("demo_model")]

IRC = f"[Service]\nEnvironment=LD_LIBRARY_PATH={LIBRARIES}\nStandardError=append:/run/hearth-irc.log\n"
SERVICE = f"""
[Service]
Environment=LD_LIBRARY_PATH={LIBRARIES} HEARTH_MODEL__THREADS=1
StandardOutput=append:/run/hearth.log
StandardError=inherit
WatchdogSec=3
TimeoutAbortSec=2
"""


def guide(first_line: str) -> str:
    """The block of docs/operations.md that begins like this."""
    text = (ROOT / "docs" / "operations.md").read_text()
    blocks = [
        textwrap.dedent(block)
        for block in re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    ]
    [block] = [each for each in blocks if each.startswith(first_line)]
    return block


@pytest.fixture(scope="module")
def url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, url: str) -> Iterator[Booted]:
    address = f"[Socket]\nListenStream=\nListenStream={url.removeprefix('http://')}\n"
    units = {"hearth.service": SERVICE, "hearth.socket": address, "hearth-irc.service": IRC}
    with booted(tmp_path_factory.mktemp("boot"), units) as running:
        running.shell(guide("cd /opt/hearth\ninstall"))
        running.shell("systemctl enable hearth.service && systemctl start hearth.socket")
        yield running


def test_the_first_client_starts_the_service_and_gets_an_answer(machine: Booted, url: str) -> None:
    assert machine.show("hearth.service", "ActiveState") == "inactive"
    reply = httpx2.post(f"{url}/ask", content="Who created Befunge?", timeout=60)
    log = machine.run("cat", "/run/hearth.log").stdout
    assert reply.status_code == 200, log
    assert "Chris Pressey" in reply.text
    assert machine.show("hearth.service", "StatusText") == f"listening on {url}"
    assert machine.run("stat", "-c", "%U %a", "/var/lib/hearth").stdout.split() == ["hearth", "700"]


def test_doctor_finds_nothing_broken(machine: Booted, url: str) -> None:
    httpx2.get(f"{url}/healthz", timeout=60)
    done = machine.run("hearth", "doctor", "--systemd", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, {check["verdict"] for check in checks.values()}) == (0, {"ok"}), checks
    # What the check of the network reads.
    assert "0.0.0.0/0" in machine.show("hearth.service", "IPAddressDeny").split()
    assert "0.0.0.0/0" not in machine.show("hearth.service", "IPAddressAllow").split()
    assert {"watchdog", "answers", "data", "model", "program", "hearth.socket"} <= set(checks)


def test_the_kernel_would_take_the_model_host_first(machine: Booted, url: str) -> None:
    httpx2.post(f"{url}/admin/host/warm", timeout=60).raise_for_status()
    host = httpx2.get(f"{url}/admin/health", timeout=60).json()["host"]["pid"]
    gateway = machine.show("hearth.service", "MainPID")
    scores = [int(machine.run("cat", f"/proc/{pid}/oom_score_adj").stdout) for pid in (host, gateway)]
    assert scores[0] == 600 > scores[1]
    machine.run("kill", "-9", str(host))  # as the kernel does it
    assert httpx2.post(f"{url}/admin/host/warm", timeout=60).json()["host"]["state"] == "ready"
    assert machine.show("hearth.service", "MainPID") == gateway


def test_a_stuck_server_is_replaced_and_no_client_is_refused(machine: Booted, url: str) -> None:
    httpx2.post(f"{url}/admin/host/warm", timeout=60).raise_for_status()
    stuck = machine.show("hearth.service", "MainPID")
    machine.run("kill", f"-{signal.SIGSTOP.value}", stuck)
    # The socket is systemd's: this waits for the next server instead of failing. One that came while the old
    # one still held the connection is cut, as by any crash.
    eventually(lambda: machine.show("hearth.service", "NRestarts") == "1", "the watchdog did not end it")
    assert httpx2.get(f"{url}/healthz", timeout=60).json() == {"status": "ok"}
    assert machine.show("hearth.service", "MainPID") not in (stuck, "0")


def test_keys_backup_and_restore_as_the_guide_says(machine: Booted, url: str) -> None:
    key = machine.shell("hearth key create ops --role admin").strip()
    authorized = {"Authorization": f"Bearer {key}"}
    assert httpx2.get(f"{url}/v1/models", timeout=60).status_code == 401
    assert httpx2.get(f"{url}/v1/models", headers=authorized, timeout=60).status_code == 200
    machine.shell("hearth backup /var/backups/hearth/BACKUP.db")
    machine.shell("hearth key create alice")
    machine.shell(guide("hearth key create alice-2"))
    assert "alice-2" in machine.shell("hearth key list")
    machine.shell(guide("systemctl stop hearth.service hearth.socket\nrm"))
    assert "alice" not in machine.shell("hearth key list")
    assert httpx2.get(f"{url}/v1/models", headers=authorized, timeout=60).status_code == 200


BOT = """
[gateway]
url = "{url}"
key_file = "$CREDENTIALS_DIRECTORY/irc.key"
[bot]
state_dir = "$STATE_DIRECTORY"
[[networks]]
name = "test"
host = "127.0.0.1"
port = {port}
tls = false
channels = [{{name = "#test"}}]
"""


async def test_the_irc_client_as_a_service(machine: Booted, url: str, tmp_path: Path) -> None:
    """With the account, the key and the folder that systemd gives it."""
    ircd = Ngircd(tmp_path)
    try:
        async with person(ircd.port, "alice", "#test") as alice:
            machine.shell(guide("cd /opt/hearth\n(umask"))
            config = BOT.format(url=url, port=ircd.port)
            machine.shell(f"cat > /etc/hearth/hearth-irc.toml << 'END'\n{config}END")
            machine.shell(guide("CREDENTIALS_DIRECTORY="))
            await alice.expect("JOIN")
            alice.say("#test", "hearth: Who created Befunge?")
            assert "Chris Pressey" in await alice.answer(seconds=60), machine.run(
                "cat", "/run/hearth-irc.log"
            ).stdout
            alice.say("hearth", "!forget me")
            assert "are gone" in await alice.expect_from("hearth", "done")
        status = machine.run("hearth", "doctor", "--systemd", "--json")
        found = {check["name"]: check["verdict"] for check in json.loads(status.stdout)["checks"]}
        assert [found[name] for name in ("irc client", "irc program", "irc configuration")] == ["ok"] * 3
        assert machine.run("stat", "-c", "%a", "/var/lib/hearth-irc/state.json").stdout.strip() == "600"
        machine.shell("systemctl stop hearth-irc")
        assert machine.show("hearth-irc.service", "Result") == "success"
    finally:
        ircd.stop()


def test_a_stop_is_clean(machine: Booted, url: str) -> None:
    key = machine.shell("hearth key create last --role admin").strip()
    warm = httpx2.post(f"{url}/admin/host/warm", headers={"x-api-key": key}, timeout=60)
    assert warm.status_code == 200
    assert machine.run("systemctl", "stop", "hearth.service", "hearth.socket").returncode == 0
    assert machine.show("hearth.service", "Result") == "success"
    assert machine.run("cat", "/run/hearth.log").stdout.count('"host_ended"') >= 1
