"""The API source against a server that lags, fails, drips, lies and leads elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import time

import pytest

from gateway.base.aio import side_by_side
from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote import client as client_module
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError
from tests.gateway.wiki.conftest import Wikis
from tests.gateway.wiki.remote.api_server import ApiServer, Write, drip, failed, raw, reply, serving, silence
from tests.waiting import until


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
    assert server.most_at_once == client_module.REQUESTS_AT_ONCE == 4


async def test_a_wiki_is_asked_once_for_its_name(server: ApiServer, wikis: Wikis) -> None:
    server.replies = [
        reply({"query": {"general": {"sitename": "Mill\u200b wiki", "generator": "MediaWiki 1.40"}}})
    ]
    wiki = wikis(server.api_url)
    assert [site.name for site in await asyncio.gather(wiki.site(), wiki.site())] == ["Mill wiki"] * 2
    (request,) = server.requests
    assert (request.parameters["meta"], request.parameters["siprop"]) == ("siteinfo", "general")


async def test_a_wiki_that_does_not_tell_its_name_is_read_all_the_same(
    server: ApiServer, wikis: Wikis
) -> None:
    server.replies = [reply({"error": {"code": "readapidenied", "info": "no"}})]
    wiki = wikis(server.api_url)
    assert [(await wiki.site()).name for _ in range(3)] == [""] * 3
    assert len(server.requests) == 1  # a failure is not repeated at every question
    assert (await wiki.fetch("Page")).title == "Page"


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
    "a deep field": (reply(b'{"x":' + b"[" * 100_000), "not what MediaWiki replies"),
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
    assert client_module.retry_after(header) == seconds


def test_retry_after_is_a_date() -> None:
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3600))
    assert 3500 < (client_module.retry_after(later) or 0) <= 3600
    assert client_module.retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0
