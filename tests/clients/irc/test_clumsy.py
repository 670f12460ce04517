"""Files and folders that cannot be used: one line that names them, and the right exit status."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clients.irc.memory import StateError, StateFile
from gateway.config.settings import Settings
from tests.clients.irc.conftest import configured, running
from tests.clients.irc.raw_server import Peer, raw_server
from tests.conftest import ROOT
from tests.gateway.api.conftest import LiveServer, make_key

# Root may read and write everything, unless it gives up these rights.
_LIKE_ANYBODY = [
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
]
NETWORK = '[[networks]]\nname = "test"\nhost = "127.0.0.1"\n'


def check(folder: Path, config: str, output: str = "", **environment: str) -> tuple[int, str]:
    """Exit status and standard error of ``hearth-irc --check``, run in ``folder`` with an ordinary user's rights."""
    (folder / "bot.toml").write_text(config)
    prefix = " ".join(_LIKE_ANYBODY) if os.geteuid() == 0 else ""
    done = subprocess.run(
        ["bash", "-c", f"{prefix} {sys.executable} -m clients.irc.cli --config bot.toml --check {output}"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            '[gateway]\nkey_file = "~nobody-of-this-name/key"\n',
            "gateway.key_file: `~nobody-of-this-name` is nobody's",
        ),
        ('[gateway]\nkey_file = "umlaut"\n', "umlaut does not hold an API key"),
        ('[gateway]\nkey_file = "/dev/zero"\n', "/dev/zero has more than 65536 bytes: is it the right file?"),
        (
            '[gateway]\nkey_file = "closed/key"\n',
            "the secret in closed/key cannot be read: Permission denied",
        ),
        (
            '[bot]\nstate_dir = "~nobody-of-this-name/x"\n',
            "bot.state_dir: `~nobody-of-this-name` is nobody's",
        ),
        ('[bot]\nstate_dir = "bot.toml"\n', "bot.toml cannot be created: File exists; see `state_dir`"),
        ('[bot]\nstate_dir = "/proc/state"\n', "/proc/state cannot be created: No such file or directory"),
        ('[bot]\nstate_dir = "shut"\n', "shut cannot be written to: see its owner and mode, or `state_dir`"),
    ],
)
def test_files_and_folders_that_cannot_be_used(tmp_path: Path, config: str, words: str) -> None:
    (tmp_path / "umlaut").write_text("schlüssel\n")
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "shut").mkdir(mode=0o500)
    status, said = check(tmp_path, config + NETWORK)
    assert (status, words in said) == (78, True), said
    assert said.startswith("hearth-irc: ") and said.count("\n") == 1


def test_a_certificate_in_a_closed_folder(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    status, said = check(tmp_path, NETWORK + 'tls_ca_file = "closed/ca.pem"\n')
    assert (status, "networks.test.tls_ca_file: closed/ca.pem cannot be read: Permission denied" in said) == (
        78,
        True,
    )


async def test_a_wrong_key_and_a_full_standard_output(
    server: LiveServer, settings: Settings, tmp_path: Path
) -> None:
    good = make_key(settings, "irc", "user")
    config = f'[gateway]\nurl = "{server.url}"\n{NETWORK}'

    async def status(output: str = "", **environment: str) -> tuple[int, str]:
        return await asyncio.to_thread(check, tmp_path, config, output, **environment)

    assert await status(HEARTH_API_KEY=good) == (0, "")
    refused = await status(HEARTH_API_KEY="hk_wrong")
    assert (refused[0], "unknown or revoked" in refused[1]) == (78, True), refused
    full = await status("> /dev/full", HEARTH_API_KEY=good)
    assert full == (1, "hearth-irc: standard output: No space left on device\n")


async def test_two_processes_do_not_share_a_state(tmp_path: Path) -> None:
    """The second one would overwrite who does not want to be remembered."""

    async def play(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")
        await peer.rest()

    async with raw_server(play) as irc:
        async with running(configured(irc.port, "http://127.0.0.1:1", tmp_path)):
            other = StateFile(tmp_path)
            with pytest.raises(StateError, match=f"another hearth-irc uses {tmp_path}: stop it"):
                other.hold()
        other.hold()
        other.release()
