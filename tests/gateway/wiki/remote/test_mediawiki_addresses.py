"""Where the API client connects: redirects, proxies, private addresses, certificates."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gateway.base.errors import ConfigurationError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.mediawiki import MediaWiki
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError
from tests.gateway.wiki.conftest import Wikis
from tests.gateway.wiki.remote.api_server import ApiServer, reply, serving


@pytest.mark.parametrize("location", ["/elsewhere/api.php?action=query", "api.php?x=1", "?y=2"])
async def test_redirects_on_the_same_host_are_followed(
    server: ApiServer, wikis: Wikis, location: str
) -> None:
    server.replies = [reply(b"", 301, Location=location), reply(server.answer({"action": "query"}))]
    assert (await wikis(server.api_url).search_text("x", 3)).refs[0].title == "Found"
    assert len(server.requests) == 2


async def test_a_redirect_to_another_host_is_refused_at_every_hop(server: ApiServer, wikis: Wikis) -> None:
    async with serving() as other:
        port = other.url.rpartition(":")[2]
        for location in (
            other.api_url,
            f"http://localhost:{port}/api.php",
            f"//127.0.0.1:{port}/",
            f"http://127.1:{port}/",
            f"http://user:pw@{server.url.removeprefix('http://')}/api.php",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "https://127.0.0.1/",
            "file:///etc/passwd",
            "gopher://127.0.0.1:1/x",
            "http://[",
            "",
        ):
            server.requests.clear()
            server.replies = [reply(b"", 302, Location="/second"), reply(b"", 302, Location=location)]
            with pytest.raises(WikiReplyError, match="redirects to") as caught:
                await wikis(server.api_url).search_text("x", 3)
            assert "pw" not in caught.value.message
            assert [request.path for request in server.requests] == ["/api.php", "/second"]
        assert other.requests == []


async def test_a_circle_of_redirects_ends(server: ApiServer, wikis: Wikis) -> None:
    server.replies = [reply(b"", 302, Location="/api.php") for _ in range(9)]
    with pytest.raises(WikiReplyError, match="more than 3 times"):
        await wikis(server.api_url).search_text("x", 3)
    assert len(server.requests) == 4


async def test_proxies_of_the_environment_are_not_used(
    server: ApiServer, wikis: Wikis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert (await wikis(server.api_url).search_text("x", 3)).refs


async def test_nobody_listening_is_a_temporary_error(wikis: Wikis) -> None:
    with pytest.raises(
        WikiUnavailableError, match=r"the connection to http://127\.0\.0\.1:1/api\.php failed"
    ):
        await wikis("http://127.0.0.1:1/api.php").fetch("X")


class Names:
    """A name server's answers in turn; the last one repeats."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: Any, *args: Any, **kwargs: Any) -> list[Any]:
        if not str(host).endswith(".test"):
            return self.real(host, port, *args, **kwargs)
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise socket.gaierror(-2, "Name or service not known")
        family = socket.AF_INET6 if ":" in answer else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (answer, port or 0))]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Names:
        self.real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)
        return self


async def test_a_name_that_leads_to_a_private_address_needs_leave(
    server: ApiServer, wikis: Wikis, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names("127.0.0.1").install(monkeypatch)
    named = server.api_url.replace("127.0.0.1", "wiki.test")
    with pytest.raises(WikiReplyError, match=r"leads to 127\.0\.0\.1.*set wiki\.private_address"):
        await wikis(named).search_text("x", 3)
    assert server.requests == []
    assert (await wikis(named, private_address=True).search_text("x", 3)).refs
    assert server.requests[0].headers["host"] == named.removeprefix("http://").removesuffix("/api.php")


async def test_the_address_that_was_checked_is_the_one_that_is_used(
    server: ApiServer, wikis: Wikis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the second answer would lead to the cloud's metadata."""
    names = Names("127.0.0.1", "169.254.169.254").install(monkeypatch)
    wiki = wikis(server.api_url.replace("127.0.0.1", "wiki.test"), private_address=True)
    for _ in range(3):
        assert (await wiki.search_text("x", 3)).refs
    assert (names.asked, len(server.requests)) == (1, 3)
    wiki.api.client._http._transport._resolve_at = 0.0  # type: ignore[attr-defined]
    with pytest.raises(WikiReplyError, match=r"169\.254\.169\.254, which is not public"):
        await wiki.search_text("x", 3)
    assert len(server.requests) == 3


async def test_a_name_that_leads_nowhere(wikis: Wikis, monkeypatch: pytest.MonkeyPatch) -> None:
    Names("").install(monkeypatch)
    with pytest.raises(WikiUnavailableError, match=r"`wiki\.test` cannot be resolved") as caught:
        await wikis("http://wiki.test/api.php").fetch("X")
    assert caught.value.retry_after


@pytest.fixture(params=["wiki.test", "other.test"])
def certificate(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[str, ssl.SSLContext]:
    """A trusted certificate: the name it is for, and a server's context with it."""
    name, certificate, key = request.param, tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    try:
        subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the Debian package openssl")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    return name, tls


async def test_certificates_are_for_the_name_and_not_the_address(
    wikis: Wikis, monkeypatch: pytest.MonkeyPatch, certificate: tuple[str, ssl.SSLContext]
) -> None:
    Names("127.0.0.1").install(monkeypatch)
    name, tls = certificate
    async with serving(tls) as server:
        wiki = wikis(server.api_url.replace("127.0.0.1", "wiki.test"), private_address=True)
        if name == "wiki.test":
            assert (await wiki.search_text("x", 3)).refs
        else:
            with pytest.raises(WikiUnavailableError, match="certificate"):
                await wiki.search_text("x", 3)
            assert server.requests == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("wiki.example/api.php", "must begin with"),
        ("ftp://wiki.example/api.php", "must begin with"),
        ("http:///api.php", "must begin with"),
        ("http://[/api.php", "not a host"),
        ("http://a b/api.php", "not a host"),
        ("http://wiki.example:x/api.php", "not the address"),
        ("http://me:secret@wiki.example/api.php", "user name or password"),
        ("http://wiki.example/api.php?action=query", "must end with the path"),
    ],
)
def test_a_wrong_address_is_a_configuration_error(address: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"`wiki\.api_url` is .*{reason}") as caught:
        MediaWiki(WikiSettings(api_url=address))
    assert "secret" not in caught.value.message
    assert caught.value.param == "wiki.api_url"
