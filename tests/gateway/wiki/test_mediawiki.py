"""The API source against a server that lags, fails, drips, lies and leads elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.aio import side_by_side
from gateway.errors import ConfigurationError, NotFoundError
from gateway.settings import WikiSettings
from gateway.wiki import client as client_module
from gateway.wiki import politeness
from gateway.wiki.mediawiki import MediaWiki
from gateway.wiki.trouble import WikiReplyError, WikiUnavailableError
from tests.gateway.wiki.api_server import ApiServer, Write, drip, failed, raw, reply, serving, silence
from tests.waiting import until


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serving() as api:
        yield api


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(politeness, "_FIRST_BACKOFF", 0.01)


class Wikis:
    """Sources that are closed in the end."""

    def __init__(self) -> None:
        self.made: list[MediaWiki] = []

    def __call__(self, api_url: str, **values: Any) -> MediaWiki:
        self.made.append(
            MediaWiki(WikiSettings(**{"api_url": api_url, "fetch_timeout_seconds": 30} | values))
        )
        return self.made[-1]


@pytest.fixture
async def wikis() -> AsyncIterator[Wikis]:
    made = Wikis()
    yield made
    for wiki in made.made:
        await wiki.close()


async def test_requests_say_who_asks_and_how_long_a_lag_is_borne(server: ApiServer, wikis: Wikis) -> None:
    wiki = wikis(server.api_url, user_agent_contact="https://example.org/bot", maxlag_seconds=3)
    await wiki.search_titles("some thing", 3)
    await wiki.search_text("some thing", 3)
    await wiki.fetch("Some thing")
    assert len(server.requests) >= 4
    for request in server.requests:
        agent = request.headers["user-agent"]
        assert agent.startswith("hearth/")
        assert "(https://example.org/bot)" in agent
        assert (request.path, request.parameters["maxlag"]) == ("/api.php", "3")
    assert "no contact configured" in client_module.user_agent(WikiSettings())


async def test_at_most_four_requests_at_a_time(server: ApiServer, wikis: Wikis) -> None:
    server.seconds = 0.02
    wiki = wikis(server.api_url)
    pages = await asyncio.gather(*(wiki.fetch(f"Page {n}") for n in range(12)))
    assert [page.title for page in pages] == [f"Page {n}" for n in range(12)]
    assert server.most_at_once == politeness.REQUESTS_AT_ONCE == 4


BUSY = [
    failed("maxlag", Retry_After="1"),
    failed("ratelimited", Retry_After="1"),
    reply({}, 429, Retry_After="1"),
    reply({}, 503, Retry_After="1"),
]


async def test_a_busy_wiki_is_asked_again_after_the_time_it_names(wikis: Wikis) -> None:
    async def ask(busy: Write) -> None:
        async with serving() as server:
            server.replies = [busy]
            wiki = wikis(server.api_url)
            assert (await wiki.search_text("x", 3)).refs[0].title == "Found"
            first, second = server.requests
            assert second.at - first.at >= 1.0
            assert (await wiki.health()).failures == 0

    await side_by_side(ask(busy) for busy in BUSY)


async def test_while_a_wiki_asks_to_wait_nothing_is_asked(server: ApiServer, wikis: Wikis) -> None:
    server.replies = [failed("maxlag", Retry_After="1")]
    wiki = wikis(server.api_url)
    first = asyncio.create_task(wiki.search_text("x", 3))
    await until(lambda: wiki.api.client.paused > 0)
    await wiki.search_text("y", 3)
    await first
    assert all(request.at - server.requests[0].at >= 1.0 for request in server.requests[1:])


async def test_who_would_wait_too_long_is_told_at_once(server: ApiServer, wikis: Wikis) -> None:
    server.replies = [reply({}, 503, Retry_After="600")]
    wiki = wikis(server.api_url)
    for _ in range(2):
        with pytest.raises(WikiUnavailableError, match="asks to wait") as caught:
            await wiki.search_text("x", 3)
        assert caught.value.retry_after is not None
        assert 590 < caught.value.retry_after <= 600
    assert len(server.requests) == 1
    health = await wiki.health()
    assert health.status == "failing"
    assert health.failures == 2
    assert health.problem is not None
    assert "asks to wait" in health.problem


TRUNCATED = b'{"query": {"pages": [{"ns": 0, "ti'
PASSING = {
    "429": reply({}, 429),
    "500": reply(b"<h1>PHP fatal error</h1>", 500),
    "502": reply(b"", 502),
    "cloudflare": reply(b"", 521),
    "internal": failed("internal_api_error_DBQueryError"),
    "read-only": failed("readonly"),
    "cut JSON": reply(TRUNCATED),
    "cut reply": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + TRUNCATED),
    "cut gzip": reply(gzip.compress(b"{}" * 500)[:-9], Content_Encoding="gzip"),
    "no reply": raw(b""),
    "no HTTP": raw(b"\xff\x00garbage\r\n\r\n"),
    "cut head": raw(b"HTTP/1.1 200 OK\r\nContent-"),
    "not UTF-8": reply(b'{"query": {"pages": [{"title": "\xff"}]}}'),
}


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
async def test_what_may_pass_is_tried_three_times(server: ApiServer, wikis: Wikis, passing: Write) -> None:
    wiki = wikis(server.api_url)
    server.replies = [passing, passing]
    assert (await wiki.search_text("x", 3)).refs[0].title == "Found"
    assert len(server.requests) == 3
    server.replies = [passing] * 3
    with pytest.raises(WikiUnavailableError) as caught:
        await wiki.search_text("x", 3)
    assert caught.value.retry_after
    assert len(server.requests) == 6
    assert (await wiki.health()).status == "failing"
    await wiki.search_text("x", 3)
    assert (await wiki.health()).status == "ok"


PAGE = {"title": "X", "lastrevid": 1}
BOMB = gzip.compress(b" " * 20_000_000)
LASTING = {
    "another page": (reply(b"<!doctype html><p>Welcome"), "not JSON"),
    "nothing": (reply(b""), "not JSON"),
    "404": (reply(b"", 404), "status 404: wiki.api_url must be"),
    "403": (reply(b"", 403), "status 403"),
    "a list": (reply([1, 2]), "not what MediaWiki replies"),
    "other types": (reply({"query": {"pages": [{"title": 3}]}}), "not what MediaWiki replies"),
    "deep": (reply(b"[" * 100_000), "not JSON|not what MediaWiki"),
    "private wiki": (failed("readapidenied"), "without login"),
    "refusal": (failed("unknown_action"), "refused the request .unknown_action.: told why"),
    "huge": (reply(b" " * (8 * 1024 * 1024 + 1)), "larger than 8 MiB"),
    "bomb": (reply(BOMB, Content_Encoding="gzip"), "larger than 8 MiB"),
    "damaged gzip": (reply(b"not gzip at all", Content_Encoding="gzip"), "cannot be unpacked"),
    "brotli": (reply(b"...", Content_Encoding="br"), "encoding `br`"),
    "script": (reply({"query": {"pages": [PAGE | {"canonicalurl": "javascript:alert(1)"}]}}), "no usable address"),
    "no address": (reply({"query": {"pages": [PAGE]}}), "no usable address"),
}  # fmt: skip


@pytest.mark.parametrize(("lasting", "message"), LASTING.values(), ids=LASTING)
async def test_what_cannot_pass_is_an_error_at_once(
    server: ApiServer, wikis: Wikis, lasting: Write, message: str
) -> None:
    server.replies = [lasting]
    with pytest.raises(WikiReplyError, match=message):
        await wikis(server.api_url).search_text("x", 3)
    assert len(server.requests) == 1


@pytest.mark.parametrize("slow", [drip, silence])
async def test_a_reply_that_does_not_end_is_given_up(server: ApiServer, wikis: Wikis, slow: Write) -> None:
    server.replies = [slow]
    with pytest.raises(WikiUnavailableError, match=r"did not reply within 0\.27 seconds") as caught:
        await wikis(server.api_url, fetch_timeout_seconds=0.3).fetch("X")
    assert caught.value.retry_after


async def test_compressed_replies_are_read(server: ApiServer, wikis: Wikis) -> None:
    body = gzip.compress(b'{"parse": {"title": "X", "revid": 1, "text": "<p>small</p>"}}')
    server.replies = [
        reply(server.answer({"action": "query", "titles": "X"})),
        reply(body, Content_Encoding="gzip"),
    ]
    assert (await wikis(server.api_url).fetch("X")).sections[0].text == "small"


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
    """Answers of a name server, one after the other; the last one stays."""

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
    wiki.api.client._http._transport._addresses.forget()  # type: ignore[attr-defined]
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
        ("http://[/api.php", "no host"),
        ("http://a b/api.php", "no host"),
        ("http://wiki.example:x/api.php", "no address"),
        ("http://me:secret@wiki.example/api.php", "user name or password"),
        ("http://wiki.example/api.php?action=query", "must end with the path"),
    ],
)
def test_a_wrong_address_is_a_configuration_error(address: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"`wiki\.api_url` is .*{reason}") as caught:
        MediaWiki(WikiSettings(api_url=address))
    assert "secret" not in caught.value.message
    assert caught.value.param == "wiki.api_url"


async def test_a_search_engine_without_title_search_is_asked_with_its_keyword(
    server: ApiServer, wikis: Wikis
) -> None:
    nothing = reply({"batchcomplete": True})
    wiki = wikis(server.api_url)
    server.replies = [nothing, nothing, failed("gsrsearch-title-disabled")]
    assert (await wiki.search_titles("two words", 3))[0].title == "Found"
    assert [r.parameters.get("gsrsearch") for r in server.requests[2:]] == [
        "two words",
        "intitle:two intitle:words",
    ]
    server.replies = [nothing, nothing]
    await wiki.search_titles("again", 3)
    assert server.requests[-1].parameters["gsrsearch"] == "intitle:again"
    assert len(server.requests) == 7


async def test_hits_are_in_the_search_engines_order_and_redirects_count_where_they_stand(
    server: ApiServer, wikis: Wikis
) -> None:
    pages = [server.page("C", index=3), server.page("B"), server.page("A", index=1), server.page("T", ns=1)]
    del pages[1]["index"]
    moved = [{"index": 2, "from": "b", "to": "B"}]
    server.replies = [reply({"query": {"pages": pages, "redirects": moved}})]
    found = (await wikis(server.api_url).search_text("x", 3)).refs
    assert [ref.title for ref in found] == ["A", "B", "C"]


async def test_a_page_that_is_deleted_between_search_and_fetch(server: ApiServer, wikis: Wikis) -> None:
    wiki = wikis(server.api_url)
    await wiki.search_text("x", 3)
    server.replies = [failed("missingtitle")]
    with pytest.raises(NotFoundError, match="no page `Found`"):
        await wiki.fetch("Found")
    assert (await wiki.health()).failures == 0


async def test_a_client_that_leaves_frees_its_slot(server: ApiServer, wikis: Wikis) -> None:
    wiki = wikis(server.api_url)
    server.replies = [silence] * 4
    tasks = [asyncio.create_task(wiki.search_text(word, 3)) for word in ("a1", "b1", "c1", "d1")]
    await until(lambda: len(server.requests) == 4)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await wiki.search_text("x", 3)).refs


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("5", 5.0),
        (" 0 ", 0.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("-1", None),
        ("9" * 400, 999999999.0),
    ],
)
def test_retry_after_is_a_number(header: str | None, seconds: float | None) -> None:
    assert politeness.retry_after(header) == seconds


def test_retry_after_is_a_date() -> None:
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3600))
    assert 3500 < (politeness.retry_after(later) or 0) <= 3600
    assert politeness.retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0
