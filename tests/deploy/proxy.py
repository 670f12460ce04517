"""The configuration of deploy/nginx in front of a gateway, on loopback ports and with a certificate of its own."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.conftest import ROOT
from tests.deploy.debian import need
from tests.waiting import eventually

NAME = "hearth.example"
OUTSIDE = "127.0.0.9"  # a client that hearth-inside.conf does not know


class Proxy:
    """A running nginx."""

    def __init__(self, folder: Path, plain: int, secure: int) -> None:
        self.folder = folder
        self.plain = plain
        self.secure = secure
        self.trust = ssl.create_default_context(cafile=folder / "cert.pem")

    def client(self, address: str = OUTSIDE) -> httpx2.Client:
        """An HTTPS client that calls from ``address``."""
        transport = _Named(httpx2.HTTPTransport(verify=self.trust, local_address=address))
        base = f"https://127.0.0.1:{self.secure}"
        return httpx2.Client(transport=transport, base_url=base, headers={"Host": NAME}, timeout=30)

    def connect(self, address: str = OUTSIDE) -> ssl.SSLSocket:
        """A bare TLS connection."""
        raw = socket.create_connection(("127.0.0.1", self.secure), 30, source_address=(address, 0))
        return self.trust.wrap_socket(raw, server_hostname=NAME)

    def errors(self) -> str:
        """nginx's own log."""
        return (self.folder / "error.log").read_text()


class _Named(httpx2.BaseTransport):
    """Speaks TLS to the name and not to the address."""

    def __init__(self, inner: httpx2.HTTPTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions["sni_hostname"] = NAME
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def balanced(*gateways: str) -> str:
    """The block of docs/scale.md for these two gateways."""
    found = re.search(r"```nginx\n(upstream .*?)```", (ROOT / "docs" / "scale.md").read_text(), re.DOTALL)
    assert found is not None
    block = found[1]
    for url in gateways:
        block, count = re.subn(
            r"server 10\.0\.0\.\d:8420", f"server {url.removeprefix('http://')}", block, count=1
        )
        assert count == 1
    return block


@contextmanager
def proxy(folder: Path, gateway: str, block: str | None = None, **changed: str) -> Iterator[Proxy]:
    """Start Debian's nginx for the gateway at this URL, or for those of an ``upstream`` block.

    ``changed`` directives get other values.
    """
    nginx = need("nginx", "nginx-light")
    shutil.copytree(ROOT / "deploy" / "nginx", folder, dirs_exist_ok=True)
    if block is not None:
        (folder / "conf.d" / "hearth-upstream.conf").write_text(f"# server 127.0.0.1:8420\n{block}")
    # Workers run under an account of their own; pytest's folders are closed to it, but nothing here is read late.
    plain, secure = free_port(), free_port()
    certificate(folder, "key.pem", "cert.pem")
    changes = {
        r"listen 80\b": f"listen 127.0.0.1:{plain}",
        r"listen 443\b": f"listen 127.0.0.1:{secure}",
        r"listen \[::\]:.*;\n": "",
        r"server 127\.0\.0\.1:8420": f"server {gateway.removeprefix('http://')}",
        r"/etc/letsencrypt/live/hearth\.example/fullchain\.pem": str(folder / "cert.pem"),
        r"/etc/letsencrypt/live/hearth\.example/privkey\.pem": str(folder / "key.pem"),
        r"pid .*;": f"pid {folder}/nginx.pid;",
        r"error_log .*;": f"error_log {folder}/error.log warn;",
        r"access_log .*;": f"access_log {folder}/access.log hearth;",
        **{rf"\b{name} .*;": f"{name} {value};" for name, value in changed.items()},
    }
    _rewrite(folder, changes)
    _own_folders(folder)
    command = [nginx, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf", "-g", "daemon off;"]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: _listens(secure), "nginx does not listen")
            yield Proxy(folder, plain, secure)
        finally:
            process.terminate()


def _rewrite(folder: Path, changes: dict[str, str]) -> None:
    """Make every change in every file; each must be found somewhere."""
    missing = set(changes)
    for path in folder.rglob("*.conf"):
        text = path.read_text()
        for pattern, value in changes.items():
            text, count = re.subn(pattern, lambda _, value=value: value, text)
            missing -= {pattern} if count else set()
        path.write_text(text)
    assert missing == set(), "the configuration no longer has these"


def _own_folders(folder: Path) -> None:
    """Where bodies and replies wait, instead of folders of the system."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    lines = [f"{kind}_temp_path {folder}/{kind};" for kind in kinds]
    path = folder / "nginx.conf"
    path.write_text(path.read_text().replace("http {\n", "http {\n" + "\n".join(lines) + "\n", 1))


def certificate(folder: Path, key: str, chain: str) -> None:
    """Make a key and a self-signed certificate for our name, as files of ``folder``."""
    command = [
        need("openssl", "openssl"),
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]
    command += [
        "-keyout",
        folder / key,
        "-out",
        folder / chain,
        "-days",
        "2",
        "-subj",
        f"/CN={NAME}",
    ]
    subprocess.run([*command, "-addext", f"subjectAltName=DNS:{NAME}"], check=True, capture_output=True)


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
