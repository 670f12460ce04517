"""Server-side request forgery: two hundred addresses, given, configured and redirected to, and nobody is called."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import set_client_factory

from gateway.base.errors import HearthError
from gateway.cli.hub import hub
from gateway.cli.hub.client import PullError, guarded_client
from gateway.cli.hub.hub import RemoteFile
from gateway.cli.imports.dump_url import Download, Events
from gateway.cli.main import run
from gateway.config.settings import WikiSettings
from gateway.wiki.remote import client as client_module
from gateway.wiki.remote.mediawiki import MediaWiki
from tests.gateway.cli.hub.watch import PUBLIC, Hostile, Watch, hostile, is_private, named

ANOTHER = "http://second.test/dump.xml"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    monkeypatch.setattr(client_module, "_FIRST_BACKOFF", 0.0)
    # Reading the system's certificates four hundred times would be most of the test.
    monkeypatch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
    watch = Watch(monkeypatch)
    watch.names |= {"first.test": [PUBLIC], "second.test": [PUBLIC]}
    with watch.internet():
        yield watch


def each(watch: Watch, port: int) -> Iterator[Hostile]:
    """The list, with its names known to the resolver."""
    lines = hostile(port)
    assert len(lines) >= 200
    for line in lines:
        if line.leads_to:
            watch.names[named(line.url)] = line.leads_to
    yield from lines


async def search(api_url: str) -> None:
    """The wiki's client, until it gives up."""
    wiki = MediaWiki(WikiSettings(api_url=api_url, fetch_timeout_seconds=30))
    try:
        await wiki.search_text("x", 1)
    finally:
        await wiki.close()


def download(url: str, folder: Path) -> None:
    Download(url, folder).fetch(Events(lambda have, total: None, lambda sentence: None))


async def test_a_configured_wiki(watch: Watch) -> None:
    with watch.listening() as port:
        for line in each(watch, port):
            if not line.meant:
                with pytest.raises(HearthError):
                    await search(line.url)
                assert watch.private == [], line.url
        assert not watch.knocked()


def test_a_given_dump(watch: Watch, tmp_path: Path) -> None:
    with watch.listening() as port:
        for line in each(watch, port):
            if not line.meant:
                arguments = ["import-wiki", line.url, "--data-dir", str(tmp_path)]
                assert run(arguments) != 0, line.url
                assert watch.private == [], line.url
        assert not watch.knocked()


async def test_what_is_meant_is_contacted_and_nothing_else(watch: Watch, tmp_path: Path) -> None:
    """Without this, the tests above could pass because nothing ever connects. The port is one of nobody."""
    for line in each(watch, 1):
        if line.meant:
            host = named(line.url)
            own = "127.0.0.1" if "localhost" in host else str(ipaddress.ip_address(host))
            with pytest.raises(HearthError):
                await search(line.url)
            assert watch.private, line.url
            with pytest.raises(HearthError):
                download(line.url, tmp_path)
            assert set(watch.private) == {own}, line.url
            watch.private.clear()


async def test_redirects_of_a_wiki(watch: Watch) -> None:
    with watch.listening() as port:
        for line in each(watch, port):
            watch.redirects = [line.url]
            before = watch.public
            with pytest.raises(HearthError):
                await search("http://first.test/api.php")
            assert watch.public > before
            assert watch.private == [], line.url
        assert not watch.knocked()


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_redirects_of_a_dump_hop_by_hop(watch: Watch, tmp_path: Path, hops: int) -> None:
    with watch.listening() as port:
        for line in each(watch, port):
            watch.redirects = [ANOTHER] * hops + [line.url]
            before = watch.public
            with pytest.raises(HearthError):
                download("http://first.test/dump.xml", tmp_path)
            assert watch.public - before >= hops + 1, line.url
            assert watch.private == [], line.url
        assert not watch.knocked()


async def test_a_name_that_changes_its_mind(watch: Watch, tmp_path: Path) -> None:
    """DNS rebinding: a public address for the check, a private one for who asks again."""
    with watch.listening() as port:
        url = f"http://rebind.test:{port}/dump.xml"
        watch.redirects = [url]
        for address in ("127.0.0.1", "::1", "10.0.0.1", "169.254.169.254"):
            for fetch in (search, None):
                watch.names["rebind.test"] = [PUBLIC, "|", address]
                with pytest.raises(HearthError):
                    if fetch is None:
                        download(url, tmp_path)
                    else:
                        await fetch(url)
                assert watch.private == []
        assert not watch.knocked()
        assert watch.public > 4


def test_models_are_not_pulled_from_addresses(watch: Watch, tmp_path: Path) -> None:
    with watch.listening() as port:
        for line in each(watch, port):
            assert run(["pull", line.url, "--data-dir", str(tmp_path)]) != 0
        assert watch.private == []
        assert watch.public == 0
        assert not watch.knocked()


@pytest.mark.parametrize("hops", [0, 2])
def test_redirects_of_a_hub_hop_by_hop(
    watch: Watch, tmp_path: Path, hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public hub, and one that the user has named: neither leads a download into a private network."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # huggingface-hub's, between its tries
    with watch.listening() as port, contextlib.closing(guarded_hub("http://first.test")):
        for line in each(watch, port):
            watch.redirects = [ANOTHER] * hops + [line.url]
            before = watch.public
            with pytest.raises(PullError):
                fetch("http://first.test/owner/repo/resolve/main/x.gguf", tmp_path)
            assert watch.public - before >= hops + 1, line.url
            assert watch.private == [], line.url
        assert not watch.knocked()


def test_a_hub_of_one_s_own_may_be_private(watch: Watch, tmp_path: Path) -> None:
    """Its name, and nothing that it redirects to; the public one's name may not lead inside at all."""
    for own, called in ((True, ["10.0.0.7"]), (False, [])):
        watch.names["hub.test"] = ["10.0.0.7"]
        with contextlib.closing(guarded_hub("http://hub.test", own=own)), pytest.raises(PullError):
            fetch("http://hub.test/owner/repo/resolve/main/x.gguf", tmp_path)
        assert sorted(set(watch.private)) == called
        watch.private.clear()


def test_a_proxy_is_used_and_asked_for_no_private_address(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are the proxy's to resolve and to refuse; an address is refused here."""
    monkeypatch.setenv("HTTP_PROXY", f"http://{PUBLIC}:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for target in (
        "http://127.0.0.1/x",
        "http://[::1]/x",
        "http://169.254.169.254/x",
        "http://[::ffff:10.0.0.1]/x",
    ):
        watch.redirects = [ANOTHER, target]
        before = watch.public
        with (
            contextlib.closing(guarded_hub("http://first.test")),
            pytest.raises(PullError, match="not public"),
        ):
            fetch("http://first.test/owner/repo/resolve/main/x.gguf", tmp_path)
        assert watch.public - before == 2, "both hops by name, each through the proxy"
        assert watch.private == []


def guarded_hub(endpoint: str, *, own: bool = True) -> httpx2.Client:
    """Make huggingface-hub use the client that `hearth pull` gives it, for this hub."""
    client = guarded_client(endpoint, own=own)
    set_client_factory(lambda: client)
    return client


def fetch(url: str, folder: Path) -> None:
    remote = RemoteFile("owner/repo", "x.gguf", url, "0" * 64, 10, None, "c0ffee")
    hub.download(remote, folder / "x.gguf")


def test_the_watch_sees_what_it_should(watch: Watch) -> None:
    with watch.listening() as port:
        assert not watch.knocked()
        with closing(socket.create_connection(("127.0.0.1", port))):
            assert watch.knocked()
        assert watch.private == ["127.0.0.1"]
    assert is_private("64:ff9b::7f00:1") and is_private("::ffff:8.8.8.8") and not is_private(PUBLIC)
