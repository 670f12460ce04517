"""Real IRC servers on loopback ports, each in a folder of its own: ngIRCd, and InspIRCd with Atheme's services."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.debian import need
from tests.deploy.proxy import free_port

START_SECONDS = 20.0

_NGIRCD = """
[Global]
Name = irc.test.net
Info = test
Listen = 127.0.0.1
Ports = {port}
MotdPhrase = hi
{password}
{account}
[Limits]
MaxConnectionsIP = 0
MaxJoins = 0
MaxNickLength = 20
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
SyslogFacility = local7
"""

_INSPIRCD = """
<server name="irc.test.net" description="test" network="Test">
<admin name="a" nick="a" email="a@example.org">
<bind address="127.0.0.1" port="{port}" type="clients">
<bind address="127.0.0.1" port="{tls_port}" type="clients" sslprofile="tls">
<bind address="127.0.0.1" port="{link_port}" type="servers">
<module name="ssl_gnutls">
<sslprofile name="tls" provider="gnutls" certfile="{folder}/server.pem" keyfile="{folder}/server.key"
  cafile="" requestclientcert="yes" hash="sha256">
<module name="sslinfo"><module name="cap"><module name="ircv3"><module name="ircv3_accounttag">
<module name="ircv3_ctctags"><module name="ircv3_servertime"><module name="services_account"><module name="sasl">
<module name="spanningtree"><module name="botmode">
<sasl target="services.test.net" requiressl="no">
<link name="services.test.net" ipaddr="127.0.0.1" port="{link_port}" allowmask="127.0.0.1" sendpass="linkpass"
  recvpass="linkpass">
<uline server="services.test.net" silent="yes">
<connect allow="*" timeout="30" pingfreq="120" hardsendq="1M" softsendq="64K" recvq="64K" localmax="200"
  globalmax="200" commandrate="20000" threshold="200" fakelag="off" resolvehostnames="no" useconnectban="no">
<class name="none" commands="*"><type name="none" classes="none">
<options prefixquit="">
<dns server="127.0.0.1">
<files motd="{folder}/motd">
<log method="file" type="*" level="default" target="{folder}/inspircd.log">
<pid file="{folder}/inspircd.pid">
<path configdir="{folder}" datadir="{folder}" logdir="{folder}">
"""

_ATHEME = """
{modules}
serverinfo {{ name = "services.test.net"; desc = "services"; numeric = "00A"; recontime = 1; netname = "Test";
  hidehostsuffix = "users"; adminname = "a"; adminemail = "a@example.org"; registeremail = "a@example.org";
  auth = none; loglevel = {{ info; }}; maxlogins = 50; maxusers = 0; mdlimit = 30; emaillimit = 10; emailtime = 300;
  casemapping = rfc1459; }};
uplink "irc.test.net" {{ host = "127.0.0.1"; port = {link_port}; send_password = "linkpass";
  receive_password = "linkpass"; }};
nickserv {{ nick = "NickServ"; user = "NickServ"; host = "services.test.net"; real = "nicks"; }};
saslserv {{ nick = "SaslServ"; user = "SaslServ"; host = "services.test.net"; real = "logins"; }};
general {{ flood_msgs = 0; commit_interval = 5; }};
"""
_MODULES = """
protocol/inspircd backend/opensex crypto/posix nickserv/main nickserv/register nickserv/identify nickserv/cert
nickserv/ghost nickserv/group nickserv/enforce saslserv/main saslserv/plain saslserv/external
"""


class Ngircd:
    """ngIRCd: small, without accounts and tags. May be stopped and started again on the same port."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self._program = need("ngircd", "ngircd")
        self.port = free_port()
        self._file = folder / "ngircd.conf"
        # As root it wants to become somebody else, who has to reach the file.
        account = "ServerUID = root\nServerGID = root" if os.geteuid() == 0 else ""
        line = f"Password = {password}" if password else ""
        self._file.write_text(_NGIRCD.format(port=self.port, account=account, password=line))
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        command = [self._program, "-n", "-f", str(self._file)]
        with (self._file.parent / "ngircd.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, cwd=self._file.parent
            )
        await_port(self.port, self.process)

    def stop(self) -> None:
        """End it and wait for that."""
        if self.process is not None:
            end(self.process)
            self.process = None


class Inspircd:
    """InspIRCd with TLS and tags, and Atheme for accounts and SASL."""

    def __init__(self, folder: Path) -> None:
        inspircd = need("inspircd", "inspircd")
        atheme = need("atheme-services", "atheme-services")
        self.folder = folder
        self.port, self.tls_port, link_port = free_port(), free_port(), free_port()
        self.certificate = certificate(folder, "server", "127.0.0.1")
        (folder / "motd").write_text("hi\n")
        ports = {"port": self.port, "tls_port": self.tls_port, "link_port": link_port}
        (folder / "inspircd.conf").write_text(_INSPIRCD.format(folder=folder, **ports))
        modules = "\n".join(f'loadmodule "modules/{name}";' for name in _MODULES.split())
        (folder / "atheme.conf").write_text(_ATHEME.format(modules=modules, **ports))
        root = ["--runasroot"] if os.geteuid() == 0 else []
        self._processes = [
            self._start(
                [inspircd, "--config", str(folder / "inspircd.conf"), "--nofork", *root], "inspircd.out"
            )
        ]
        await_port(self.tls_port, self._processes[0])
        files = ["-c", "atheme.conf", "-D", ".", "-l", "atheme.log", "-p", "atheme.pid"]
        files = [str(folder / each) if "." in each else each for each in files]
        self._processes.append(self._start([atheme, "-n", *files], "atheme.out"))

    def _start(self, command: list[str], log: str) -> subprocess.Popen[bytes]:
        # Debian's InspIRCd crashes when it ends; its core goes where it is deleted.
        with (self.folder / log).open("wb") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self.folder,
            )

    def stop(self) -> None:
        """End both."""
        for process in reversed(self._processes):
            end(process)


def certificate(folder: Path, name: str, host: str) -> Path:
    """A self-signed certificate ``NAME.pem`` with its key ``NAME.key``, good for a server and as a client's."""
    openssl = need("openssl", "openssl")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName=IP:{host},DNS:localhost"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / f"{name}.pem"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder with a short path: InspIRCd's own limits are short."""
    with tempfile.TemporaryDirectory(prefix="ircd") as made:
        yield Path(made)


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert process.poll() is None, f"the server ended with {process.returncode}"
        assert time.monotonic() < deadline, "the server does not listen"
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
