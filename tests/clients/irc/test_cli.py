"""The command: what it says about a configuration, and a whole life of it on the built-in model."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from clients.irc.cli import _log_to_stderr
from clients.irc.config import (
    _FORMS,
    BotConfig,
    ChannelConfig,
    Config,
    ConfigError,
    GatewayConfig,
    LimitConfig,
    NetworkConfig,
    ReplyConfig,
    SaslConfig,
    api_key,
    load,
    parse,
    secret,
)
from tests.clients.irc.ircd import Ngircd, free_port
from tests.clients.irc.person import person
from tests.conftest import ROOT
from tests.end_to_end.server import Server
from tests.gateway.api.conftest import LiveServer
from tests.waiting import until

NETWORK: dict[str, Any] = {"name": "test", "host": "irc.example.org"}
COMMAND = [sys.executable, "-m", "clients.irc.cli"]


def hearth_irc(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, cwd=ROOT, env=clean | environment, timeout=60
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"networks": []}, "networks: must be a list of at least 1 element"),
        ({"netwroks": []}, "netwroks: there is no such setting"),
        ({"networks": [{"name": "test"}]}, "networks[0].host: is missing"),
        ({"networks": [NETWORK | {"port": 70000}]}, "networks[0].port: must be a whole number of at most 65535"),
        ({"networks": [NETWORK | {"burst": 1.5}]}, "networks[0].burst: must be a whole number, not a fraction"),
        ({"networks": [NETWORK | {"color": 1}]}, "networks[0].color: there is no such setting"),
        ({"networks": [NETWORK, NETWORK]}, "2 of the name `test`"),
        ({"networks": [NETWORK | {"channels": [{"name": "test"}]}]}, "`test` is not a channel"),
        ({"networks": [NETWORK | {"channels": [{"name": "#a"}, {"name": "#A"}]}]}, "is there 2 times"),
        ({"networks": [NETWORK | {"channels": [{"name": "#a", "key": "a b"}]}]}, "channels[0].key"),
        ({"networks": [NETWORK | {"nick": "a b"}]}, "networks.test.nick"),
        ({"bot": {"nick": "a\r\nQUIT"}}, "bot.nick"),
        ({"networks": [NETWORK | {"sasl": {}}]}, "PLAIN needs `account`"),
        (
            {"networks": [NETWORK | {"sasl": {"account": "a", "password": "b"}, "tls": False}]},
            "readable on its way",
        ),
        ({"networks": [NETWORK | {"sasl": {"mechanism": "EXTERNAL"}}]}, "EXTERNAL needs"),
        ({"networks": [NETWORK | {"client_key": "/none"}]}, "needs `client_certificate`"),
        ({"networks": [NETWORK | {"tls_ca_file": "/none/at/all"}]}, "there is no file /none/at/all"),
        ({"networks": [NETWORK | {"regain": "NickServ"}]}, "networks[0].regain: must be a nick and a message"),
        ({"networks": [NETWORK | {"password": "a", "password_file": "/dev/null"}]}, "password"),
        ({"gateway": {"url": "127.0.0.1:8420"}}, "gateway.url: must be an address such as http://127.0.0.1:8420"),
        ({"gateway": {"key_file": 7}}, "gateway.key_file"),
        (
            {"networks": [NETWORK | {"private": "no"}]},
            "networks[0].private: must be `wiki` or `chat` or `off`, not 'no'",
        ),
        (
            {"networks": [NETWORK | {"channels": [{"name": "#a", "mode": "x"}]}]},
            "mode: must be `wiki` or `chat`, not 'x'",
        ),
        ({"replies": {"lines": 0}}, "replies.lines"),
        ({"limits": {"user_seconds": -1}}, "limits.user_seconds"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_names_the_field(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse({"networks": [NETWORK]} | change)
    assert words in str(error.value)


def test_every_pattern_is_explained() -> None:
    text = (ROOT / "clients" / "irc" / "config.py").read_text()
    assert set(re.findall(r"(\w+): Annotated\[.*pattern=", text)) == set(_FORMS)


def test_the_example_shows_every_setting() -> None:
    """As it is it can be used, and without the marks before names it has every setting there is."""
    text = (ROOT / "deploy" / "irc" / "hearth-irc.toml").read_text()
    assert parse(tomllib.loads(text)).networks
    tables = tomllib.loads(re.sub(r"^#(?=[a-z\[])", "", text, flags=re.MULTILINE))
    network = tables["networks"][0]
    shown: list[tuple[Any, dict[str, Any]]] = [(Config, tables), (NetworkConfig, network)]
    shown += [(SaslConfig, network["sasl"]), (ChannelConfig, network["channels"][0])]
    shown += [(GatewayConfig, tables["gateway"]), (BotConfig, tables["bot"])]
    shown += [(ReplyConfig, tables["replies"]), (LimitConfig, tables["limits"])]
    for kind, table in shown:
        assert set(table) == set(kind.__struct_fields__), kind


def write(file: Path, url: str, port: int, state: Path) -> Path:
    # The built-in model answers the same way each time in the plain style: its temperature is 0.
    file.write_text(
        f'[gateway]\nurl = "{url}"\nstyle = "plain"\n[bot]\nstate_dir = "{state}"\n[[networks]]\nname = "test"\n'
        f'host = "127.0.0.1"\nport = {port}\ntls = false\nchannels = [{{name = "#test"}}]\n'
    )
    return file


async def test_check_tells_what_is_wrong(server: LiveServer, tmp_path: Path) -> None:
    async def check(file: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(hearth_irc, "--config", str(file), "--check", **environment)

    good = await check(write(tmp_path / "good.toml", server.url, 6667, tmp_path / "state"))
    assert (good.returncode, good.stdout) == (0, "1 network, 1 channel, and the gateway is ready\n"), (
        good.stderr
    )
    nowhere = await check(
        write(tmp_path / "n.toml", f"http://127.0.0.1:{free_port()}", 6667, tmp_path / "state")
    )
    assert nowhere.returncode == 75 and "start it, or correct gateway.url" in nowhere.stderr
    wrong = await check(write(tmp_path / "w.toml", server.url, 0, tmp_path / "state"))
    assert wrong.returncode == 78 and "networks[0].port" in wrong.stderr and "Traceback" not in wrong.stderr


def test_what_others_wrote_cannot_drive_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names in the configuration, and what people and servers on IRC send into the log."""
    file = tmp_path / "bot.toml"
    file.write_text('[[networks]]\nname = "a"\nhost = "h"\n"\\u009Bnone" = 1\n')
    done = hearth_irc("--config", str(file))
    assert done.returncode == 78 and "none: there is no such setting" in done.stderr
    configured = structlog.get_config()
    try:
        _log_to_stderr("info")
        structlog.get_logger("test").info("left", person="eve\u202e\x9b31m", lines="one\x1b[2J\ntwo")
    finally:
        structlog.configure(**configured)
    line = capsys.readouterr().err
    assert "person=eve31m" in line and "one[2J\\ntwo" in line
    assert not {"\u202e", "\x9b", "\x1b"} & set(line + done.stderr)


def test_files_that_are_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[networks]")
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    for name, words in (("missing", "cannot be read"), ("bad", "is not TOML"), ("latin", "is not UTF-8")):
        with pytest.raises(ConfigError, match=words):
            load(tmp_path / f"{name}.toml")


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read"), ("", "is empty"), (" \n", "is empty")]
)
def test_secrets_come_from_files(content: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=words):
        secret("", file)
    file.write_text("opensesame\nand more")
    assert secret("", file) == "opensesame"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, demo_model: str) -> Iterator[Server]:
    """The gateway as `make run` starts it."""
    server = Server(tmp_path_factory.mktemp("irc") / "data", demo_model)
    yield server
    server.stop()


async def test_from_a_question_on_irc_to_a_cited_answer(
    demo: Server, shared_ngircd: Ngircd, tmp_path: Path
) -> None:
    """Two people, a real server, the real gateway, the built-in model; the bot is a process of its own."""
    file = write(tmp_path / "bot.toml", demo.url, shared_ngircd.port, tmp_path / "state")
    async with (
        person(shared_ngircd.port, "alice", "#test") as alice,
        person(shared_ngircd.port, "bob", "#test") as bob,
    ):
        log = (tmp_path / "log").open("wb")
        bot = await asyncio.create_subprocess_exec(
            *COMMAND, "--config", str(file), cwd=ROOT, stdout=log, stderr=log
        )
        try:
            await alice.expect(":hearth!.* JOIN :?#test", 60)
            alice.say("#test", "hearth: Who created Befunge?")
            for each in (alice, bob):
                told = await each.answer(seconds=60)
                assert told.startswith("alice: ") and "Chris Pressey" in told
                assert told.endswith(" https://esolangs.org/wiki/Befunge") and "[1]" not in told
            bob.say("hearth", "What is the capital of France?")
            assert await bob.private() == "The wiki does not say."
            bob.say("#test", "!sources")
            assert (await bob.expect_from("hearth", "bob: ")).endswith("https://esolangs.org/wiki/Befunge")
            await until(lambda: (tmp_path / "state" / "state.json").exists())
            bot.send_signal(signal.SIGTERM)
            await bob.expect(":hearth!.* QUIT .*I will be back")
            assert await asyncio.wait_for(bot.wait(), 20) == 0
        finally:
            if bot.returncode is None:
                bot.kill()
                await bot.wait()
            log.close()
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_paths_of_a_service_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit's credentials and state are where systemd says; elsewhere such a path is refused by name."""
    file = tmp_path / "bot.toml"
    file.write_text(
        '[gateway]\nkey_file = "$CREDENTIALS_DIRECTORY/irc.key"\n[bot]\nstate_dir = "$STATE_DIRECTORY"\n'
        '[[networks]]\nname = "test"\nhost = "127.0.0.1"\n'
    )
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    (tmp_path / "irc.key").write_text("hk_x\n")
    config = load(file)
    assert (api_key(config.gateway), config.bot.state_dir) == ("hk_x", tmp_path / "state")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(ConfigError, match=r"gateway\.key_file: .*CREDENTIALS_DIRECTORY.* is not set"):
        load(file)
