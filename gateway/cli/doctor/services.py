"""The checks of `hearth doctor --systemd`: the units as systemd sees them, and the files and accounts they name."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal

import httpx2
from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.private import exposed
from gateway.cli.common.text import size_text
from gateway.config.sources import load_settings
from gateway.models.catalog import resolve_model
from gateway.server.consistency import problems

Verdict = Literal["ok", "warn", "fail"]
Properties = Mapping[str, str]

SERVICE, SOCKET, IRC = "hearth.service", "hearth.socket", "hearth-irc.service"
_BOOTED = Path("/run/systemd/system")  # exists only if systemd is the init system, see sd_booted(3)
_SHOWN = (
    "LoadState UnitFileState ActiveState Result NRestarts NeedDaemonReload Type WatchdogUSec User ExecStart "
    "Environment MemoryMax OOMPolicy IPAddressDeny IPAddressAllow Listen"
)
_UNKNOWN = "(no value)"
_SECONDS = 5.0


class Check(Struct, frozen=True):
    """One result. ``why`` says what was found and, unless the verdict is ok, what to do."""

    name: str
    verdict: Verdict
    why: str


def check_installation() -> list[Check]:
    """Check the service on this machine. Raises HearthError if systemd is not its init system."""
    if not _BOOTED.exists():
        raise HearthError(f"systemd is not PID 1 here ({_BOOTED} is missing): nothing to check")
    service, socket = show(SERVICE), show(SOCKET)
    checks = (service_checks(service), socket_checks(socket), file_checks(service), answers(service, socket))
    return [*chain(*checks), *irc_checks(show(IRC))]


def show(unit: str) -> dict[str, str]:
    """Read a unit's properties with `systemctl show`. Raises HearthError."""
    command = ["systemctl", "show", unit, f"--property={','.join(_SHOWN.split())}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HearthError(f"systemctl cannot be run: {error}") from None
    if done.returncode:
        raise HearthError(f"systemctl show {unit} failed: {done.stderr.strip()}")
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def service_checks(unit: Properties) -> Iterator[Check]:
    yield from _unit_checks(SERVICE, unit)
    if unit.get("LoadState") != "loaded":
        return
    yield _state("state", "hearth", unit)
    watchdog, memory, user = unit.get("WatchdogUSec", "0"), unit.get("MemoryMax", ""), unit.get("User", "")
    limit = f"at most {size_text(int(memory))}" if memory.isdecimal() else ""
    guarded, account = watchdog not in ("0", "infinity"), user not in ("", "root")
    survives = unit.get("OOMPolicy") == "continue"
    oom = "the whole service ends with the model host: set OOMPolicy=continue"
    notify = unit.get("Type") == "notify"
    yield _judge("readiness", notify, "systemd is notified when the server listens", "set Type=notify")
    yield _judge("watchdog", guarded, f"every {watchdog}", "set WatchdogSec=30", bad="warn")
    yield _judge("memory limit", bool(limit), limit, "none: set MemoryMax=90%", bad="warn")
    yield _judge("out of memory", survives, "the kernel ends only the model host", oom)
    yield _judge("account", account, user, "it runs as root: set User=hearth")


def socket_checks(unit: Properties) -> Iterator[Check]:
    yield from _unit_checks(SOCKET, unit)
    if unit.get("LoadState") == "loaded":
        listening = unit.get("ActiveState") == "active"
        address = unit.get("Listen", _UNKNOWN)
        yield _judge("address", listening, address, "not listening: `systemctl start hearth.socket`")


def file_checks(unit: Properties) -> Iterator[Check]:
    """Check the program, account, data directory and configuration that the service names."""
    if unit.get("LoadState") != "loaded":
        return
    yield _program("program", unit)
    try:
        account = pwd.getpwnam(unit.get("User") or "root")
    except KeyError:
        yield Check("account", "fail", f"{unit.get('User')} does not exist: run `systemd-sysusers`")
        return
    variables = dict(word.split("=", 1) for word in shlex.split(unit.get("Environment", "")) if "=" in word)
    try:
        settings = load_settings({}, {"HOME": account.pw_dir, **variables}, None).settings
    except ConfigurationError as error:
        yield Check("configuration", "fail", error.message)
        return
    yield data_directory(settings.data_dir, account)
    if wrong := problems(settings):
        yield from (Check("configuration", "fail", problem) for problem in wrong)
        return
    model = resolve_model(settings)
    if settings.wiki.api_url:
        outside = not unit.get("IPAddressDeny") or "0.0.0.0/0" in unit.get("IPAddressAllow", "").split()
        remedy = f"the service may not reach {settings.wiki.api_url}: set IPAddressAllow=any"
        yield _judge("network", outside, "may be used", remedy)
    limit = unit.get("MemoryMax", "")
    needed = model.ram_bytes + settings.model.memory_headroom_bytes
    fits = not limit.isdecimal() or needed <= int(limit)
    wants = f"{model.name} needs {size_text(needed)} of memory"
    yield _judge("model", fits, wants, f"{wants}, more than MemoryMax= of the service allows")


def irc_checks(unit: Properties) -> Iterator[Check]:
    """Check the IRC client if its unit is installed. `hearth-irc --check` checks its configuration."""
    if unit.get("LoadState") != "loaded":
        return
    yield from _unit_checks(IRC, unit)
    yield _state("irc client", "hearth-irc", unit)
    yield _program("irc program", unit)
    if named := re.search(r"--config[ =](\S+)", unit.get("ExecStart", "")):
        there = Path(named[1]).is_file()
        remedy = f"{named[1]} is missing: start from deploy/irc/hearth-irc.toml"
        yield _judge("irc configuration", there, named[1], remedy)


def data_directory(path: Path, account: pwd.struct_passwd) -> Check:
    """Check that the data directory belongs to the account and is private."""
    name = "data"
    try:
        status = path.stat()
    except FileNotFoundError:
        return Check(name, "warn", f"{path} does not exist yet: the first start creates it")
    except OSError as error:
        return Check(name, "warn", f"{path} cannot be checked ({error.strerror}): run this as root")
    if status.st_uid != account.pw_uid:
        return Check(
            name, "fail", f"{path} does not belong to {account.pw_name}: chown -R {account.pw_name}: {path}"
        )
    if remedy := exposed(path):
        return Check(name, "warn", remedy)
    return Check(name, "ok", str(path))


def answers(service: Properties, socket: Properties) -> Iterator[Check]:
    """Check that a running server answers. A stopped one is not asked, because that would start it."""
    address = socket.get("Listen", "").partition(" ")[0]
    if service.get("ActiveState") != "active" or not address:
        return
    host, _, port = address.rpartition(":")
    # A server that listens on all addresses is asked on loopback.
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}.get(host, host)
    try:
        reply = httpx2.get(f"http://{host}:{port}/readyz", timeout=_SECONDS)
    except httpx2.HTTPError as error:
        yield Check("answers", "fail", f"{address} does not answer ({error}): see `journalctl -u hearth`")
        return
    good = reply.status_code == httpx2.codes.OK
    why = f"{address}/readyz says {reply.status_code}: {reply.text[:500]}"
    yield _judge("answers", good, f"{address}/readyz", why, bad="warn")


def _state(name: str, service: str, unit: Properties) -> Check:
    state, result = unit.get("ActiveState", _UNKNOWN), unit.get("Result", _UNKNOWN)
    if state == "failed":
        remedy = f"see `journalctl -u {service}`, then `systemctl start {service}`"
        return Check(name, "fail", f"failed ({result}): {remedy}")
    restarts = unit.get("NRestarts", "0")
    if restarts in ("", "0"):
        return Check(name, "ok", state)
    why = f"{state}; restarted {restarts} times by systemd: see `journalctl -u {service}`"
    return Check(name, "warn", why)


def _program(name: str, unit: Properties) -> Check:
    found = re.search(r"path=(.+?) ;", unit.get("ExecStart", ""))
    path = Path(found[1]) if found else Path()
    there = path.is_file() and os.access(path, os.X_OK)
    return _judge(name, there, str(path), f"{path} is not a program: run `make install` in /opt/hearth")


def _unit_checks(name: str, unit: Properties) -> Iterator[Check]:
    """Check that the unit is loaded as its file says, and enabled."""
    state = unit.get("LoadState", _UNKNOWN)
    if state != "loaded":
        remedy = f"copy deploy/systemd/{name} to /etc/systemd/system and run `systemctl daemon-reload`"
        yield Check(name, "fail", f"{state}: {remedy}")
        return
    if unit.get("NeedDaemonReload") == "yes":
        yield Check(name, "warn", "its file changed: run `systemctl daemon-reload`")
    enabled = unit.get("UnitFileState") == "enabled"
    remedy = f"not started when the machine starts: `systemctl enable {name}`"
    yield _judge(name, enabled, "enabled", remedy, bad="warn")


def _judge(name: str, good: bool, found: str, remedy: str, *, bad: Verdict = "fail") -> Check:
    return Check(name, "ok" if good else bad, found if good else remedy)
