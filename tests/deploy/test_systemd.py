"""The unit files: sound, hardened, and true to the program's own limits."""

from __future__ import annotations

import configparser
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from gateway.base.errors import HearthError
from gateway.cli.doctor.services import (
    check_installation,
    data_directory,
    file_checks,
    irc_checks,
    service_checks,
    socket_checks,
)
from gateway.config.settings import ModelSettings, ServerSettings
from tests.conftest import ROOT
from tests.deploy.debian import need

UNITS = ROOT / "deploy" / "systemd"
MOST_EXPOSED = 2.0


def options(unit: str, section: str) -> dict[str, str]:
    """The last value of every option; repeated ones are allowed in unit files."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(UNITS / unit)
    return dict(parser[section])


def test_the_units_are_sound(tmp_path: Path) -> None:
    analyze = need("systemd-analyze", "systemd")
    for unit in ("hearth.service", "hearth.socket", "hearth-irc.service"):
        text = (UNITS / unit).read_text()
        # The program is not installed where the tests run.
        (tmp_path / unit).write_text(
            re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
        )
    command = [analyze, "verify", "--man=no", "--recursive-errors=no", *map(str, tmp_path.glob("hearth*"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("unit", ["hearth.service", "hearth-irc.service"])
def test_the_services_are_hardened(unit: str) -> None:
    command = [need("systemd-analyze", "systemd"), "security", "--offline=true", "--no-pager"]
    done = subprocess.run([*command, str(UNITS / unit)], capture_output=True, text=True, check=True)
    level = re.search(rf"Overall exposure level for {re.escape(unit)}: ([\d.]+)", done.stdout)
    assert level is not None, done.stdout
    assert float(level[1]) <= MOST_EXPOSED, done.stdout


def test_the_account_can_be_made() -> None:
    command = [need("systemd-sysusers", "systemd"), "--dry-run", str(UNITS / "hearth.sysusers.conf")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_limits_fit_the_program() -> None:
    service, address = options("hearth.service", "Service"), options("hearth.socket", "Socket")
    server, model = ServerSettings(), ModelSettings()
    assert int(service["TimeoutStopSec"]) > server.shutdown_grace_seconds + model.stop_grace_seconds
    assert int(service["LimitNOFILE"]) > 4 * server.max_connections
    assert address["ListenStream"] == f"{server.host}:{server.port}"
    assert (service["Type"], service["OOMPolicy"]) == ("notify", "continue")
    assert service["RestartPreventExitStatus"] == str(os.EX_CONFIG)


def test_systemd_s_own_activator_starts_the_server(tmp_path: Path, tiny_model: Path) -> None:
    activate = need("systemd-socket-activate", "systemd")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {
        "PYTHONPATH": str(ROOT),
        "HEARTH_DATA_DIR": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    passed = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    program = [sys.executable, "-m", "gateway.cli.main", "start", "--model", str(tiny_model)]
    command = [activate, "-l", f"127.0.0.1:{port}", *passed, *program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Listening on" in process.stderr.readline()
        assert httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=30).json() == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"listening on http://127.0.0.1:{port}" in printed


HEALTHY = {
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
    "Type": "notify",
    "WatchdogUSec": "30s",
    "NRestarts": "0",
    "MemoryMax": str(2**33),
    "OOMPolicy": "continue",
    "User": "hearth",
    "NeedDaemonReload": "no",
    "Listen": "127.0.0.1:8420 (Stream)",
}


def test_a_healthy_service_has_nothing_to_mend() -> None:
    checks = [*service_checks(HEALTHY), *socket_checks(HEALTHY)]
    assert {check.verdict for check in checks} == {"ok"}, checks


@pytest.mark.parametrize(
    ("changed", "verdict", "remedy"),
    [
        ({"LoadState": "not-found"}, "fail", "daemon-reload"),
        ({"ActiveState": "failed", "Result": "watchdog"}, "fail", "failed (watchdog)"),
        ({"NRestarts": "3"}, "warn", "restarted 3 times"),
        ({"UnitFileState": "disabled"}, "warn", "systemctl enable"),
        ({"NeedDaemonReload": "yes"}, "warn", "daemon-reload"),
        ({"Type": "simple"}, "fail", "Type=notify"),
        ({"WatchdogUSec": "infinity"}, "warn", "WatchdogSec"),
        ({"MemoryMax": "infinity"}, "warn", "MemoryMax"),
        ({"OOMPolicy": "stop"}, "fail", "OOMPolicy=continue"),
        ({"User": ""}, "fail", "User=hearth"),
    ],
)
def test_what_is_wrong_with_a_service_is_named(changed: dict[str, str], verdict: str, remedy: str) -> None:
    found = [check for check in service_checks(HEALTHY | changed) if check.verdict != "ok"]
    assert [(check.verdict, remedy in check.why) for check in found] == [(verdict, True)], found


def test_the_irc_client_s_unit_is_looked_at_where_it_is_installed(tmp_path: Path) -> None:
    assert list(irc_checks({"LoadState": "not-found"})) == []
    config = tmp_path / "irc.toml"
    unit = HEALTHY | {
        "ExecStart": f"{{ path={sys.executable} ; argv[]=hearth-irc --config {config} ; ignore_errors=no }}"
    }
    missing = {check.name: check for check in irc_checks(unit)}["irc configuration"]
    assert (missing.verdict, "hearth-irc.toml" in missing.why) == ("fail", True)
    config.touch()
    assert {check.verdict for check in irc_checks(unit)} == {"ok"}
    changed = {"ActiveState": "failed", "Result": "exit-code", "ExecStart": "{ path=/nowhere/x ; }"}
    failed = {check.name for check in irc_checks(unit | changed) if check.verdict == "fail"}
    assert failed == {"irc client", "irc program"}


def test_a_socket_that_does_not_listen_is_named() -> None:
    [check] = [c for c in socket_checks(HEALTHY | {"ActiveState": "inactive"}) if c.verdict != "ok"]
    assert "systemctl start hearth.socket" in check.why
    [missing] = socket_checks({"LoadState": "not-found"})
    assert missing.verdict == "fail"


def test_what_the_service_names_is_looked_at(tmp_path: Path, tiny_model: Path) -> None:
    import pwd

    me = pwd.getpwuid(os.getuid()).pw_name
    data = tmp_path / "data"
    unit = HEALTHY | {
        "User": me,
        "ExecStart": f"{{ path={sys.executable} ; argv[]=python }}",
        "Environment": f'HEARTH_DATA_DIR={data} "HEARTH_MODEL__NAME={tiny_model}" XDG_CONFIG_HOME={tmp_path}',
    }
    found = {check.name: check for check in file_checks(unit)}
    assert {name: check.verdict for name, check in found.items()} == {
        "program": "ok",
        "data": "warn",
        "model": "ok",
    }
    data.mkdir(mode=0o755)
    account = pwd.getpwuid(os.getuid())
    assert "chmod -R go=" in data_directory(data, account).why
    data.chmod(0o700)
    assert data_directory(data, account).verdict == "ok"
    other = next(each for each in pwd.getpwall() if each.pw_uid != os.getuid())
    assert (data_directory(data, other).verdict, "chown" in data_directory(data, other).why) == ("fail", True)

    def verdicts(**changed: str) -> dict[str, str]:
        return {check.name: check.verdict for check in file_checks(unit | changed)}

    remote = {"Environment": unit["Environment"] + " HEARTH_WIKI__API_URL=https://wiki.example/api.php"}
    closed = {"IPAddressDeny": "::/0 0.0.0.0/0", "IPAddressAllow": "127.0.0.0/8 ::1/128"}
    assert "network" not in verdicts(**closed)
    assert verdicts(**remote, **closed)["network"] == "fail"
    assert verdicts(**remote, **closed | {"IPAddressAllow": "::/0 0.0.0.0/0"})["network"] == "ok"
    assert verdicts(**remote)["network"] == "ok"
    assert verdicts(MemoryMax="1000")["model"] == "fail"
    assert verdicts(ExecStart="{ path=/nowhere/hearth }")["program"] == "fail"
    assert verdicts(User="nobody-of-this-name")["account"] == "fail"
    assert verdicts(Environment=unit["Environment"] + " HEARTH_MEMORY__FLOOR=9000")["configuration"] == "fail"
    assert verdicts(Environment=f"HEARTH_NONSENSE=1 XDG_CONFIG_HOME={tmp_path}")["configuration"] == "fail"


@pytest.mark.skipif(Path("/run/systemd/system").exists(), reason="systemd runs this machine")
def test_a_machine_without_systemd_is_told_so() -> None:
    with pytest.raises(HearthError, match="systemd is not PID 1 here"):
        check_installation()
