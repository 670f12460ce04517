"""Requests to a MediaWiki's ``api.php`` and its replies as values. No knowledge of what they are for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.client import Busy, WikiClient, WikiResponse
from gateway.wiki.remote.record import Record
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError
from gateway.wiki.remote.values import (
    ApiFailure,
    PageQueryReply,
    Parsed,
    ParseReply,
    Problem,
    QueryReply,
    SearchReply,
    Site,
    SiteReply,
)

# What a wiki that lags asks for when it does not say how long.
_LAG_SECONDS = 5.0
_LONGEST_QUOTE = 200
# CirrusSearch's own, beside MediaWiki's: its pool is full, or its servers do not answer.
_BUSY_CODES = frozenset(
    {"maxlag", "ratelimited", "readonly", "cirrussearch-too-busy-error", "cirrussearch-backend-error"}
)
_BUSY_PREFIX = "internal_api_error"
_MISSING_CODES = frozenset(
    {"missingtitle", "nosuchpageid", "nosuchrevid", "invalidtitle", "pagecannotexist", "missingcontent"}
)
_CLOSED_CODES = frozenset({"readapidenied", "permissiondenied", "blocked", "autoblocked"})


class ApiError(WikiReplyError):
    """The API refused a request. ``api_code`` is MediaWiki's."""

    def __init__(self, api_code: str, message: str) -> None:
        super().__init__(message, kind="refused")
        self.api_code = api_code


R = TypeVar("R", bound=ApiFailure)


class Api:
    """One wiki's API. Every method raises WikiUnavailableError and WikiReplyError."""

    def __init__(self, settings: WikiSettings) -> None:
        self.client = WikiClient(settings)
        self.record = Record()
        self._common = {
            "format": "json",
            "formatversion": "2",
            "maxlag": str(settings.maxlag_seconds),
        }

    async def query(self, parameters: Mapping[str, str]) -> PageQueryReply:
        """Pages with their revisions and addresses, redirects resolved."""
        asked = {"action": "query", "prop": "info", "inprop": "url", "redirects": "1", **parameters}
        return (await self._ask(asked, QueryReply)).query

    async def suggestion(self, words: str, namespaces: str) -> str:
        """What the search engine thinks that was meant ("did you mean"); empty when it has no idea."""
        asked = {
            "action": "query",
            "list": "search",
            "srsearch": words,
            "srnamespace": namespaces,
            "srlimit": "1",
            "srinfo": "suggestion",
            "srprop": "",
        }
        return (await self._ask(asked, SearchReply)).query.searchinfo.suggestion

    async def parse(self, title: str) -> Parsed:
        """The page as HTML. Raises NotFoundError when there is none."""
        asked = {
            "action": "parse",
            "page": title,
            "redirects": "1",
            "prop": "text|revid",
            "disableeditsection": "1",
            "disabletoc": "1",
            "disablelimitreport": "1",
        }
        try:
            parsed = (await self._ask(asked, ParseReply)).parse
        except ApiError as error:
            if error.api_code in _MISSING_CODES:
                raise NotFoundError(f"the wiki has no page `{title}`") from None
            raise
        if parsed is None:
            raise WikiReplyError("the wiki's reply has no text of the page")
        return parsed

    async def site(self) -> Site:
        """Name and version of the wiki."""
        reply = await self._ask(
            {"action": "query", "meta": "siteinfo", "siprop": "general|statistics"}, SiteReply
        )
        if reply.query is None:
            raise WikiReplyError("the wiki's reply does not say what it is")
        general, statistics = reply.query.general, reply.query.statistics
        return Site(general.sitename, general.generator, statistics.pages)

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()

    async def _ask(self, parameters: Mapping[str, str], kind: type[R]) -> R:
        begun = time.monotonic()
        try:
            reply = await self._ask_until_served({**parameters, **self._common}, kind)
        except (WikiUnavailableError, WikiReplyError) as error:
            missing = isinstance(error, ApiError) and error.api_code in _MISSING_CODES
            self.record.add(time.monotonic() - begun, None if missing else error)
            raise
        self.record.add(time.monotonic() - begun)
        return reply

    async def _ask_until_served(self, parameters: Mapping[str, str], kind: type[R]) -> R:
        attempt = 0
        while True:
            try:
                return self._read(await self.client.get(parameters), kind)
            except Busy as busy:
                await self.client.wait(busy, attempt)
                self.record.retries[busy.kind] += 1
            attempt += 1

    def _read(self, reply: WikiResponse, kind: type[R]) -> R:
        """The reply as a value. Raises Busy when asking again may help."""
        try:
            read = msgspec.json.decode(reply.body, type=kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise WikiReplyError(f"the wiki's reply is not what MediaWiki replies: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            if reply.body.lstrip()[:1] == b"{":
                raise Busy("the wiki's reply ended early", None, "connection") from None
            raise WikiReplyError(
                "the wiki replied with something that is not JSON: wiki.api_url must be the address of its api.php"
            ) from None
        if read.error is not None:
            _refuse(read.error, reply.retry_after)
        return read


def _refuse(problem: Problem, retry_after: float | None) -> None:
    said = " ".join(problem.info.split())[:_LONGEST_QUOTE]
    if problem.code in _BUSY_CODES or problem.code.startswith(_BUSY_PREFIX):
        lag = _LAG_SECONDS if problem.code == "maxlag" else None
        raise Busy(f"the wiki is busy ({problem.code}): {said}", retry_after or lag, "overload")
    if problem.code in _CLOSED_CODES:
        raise ApiError(problem.code, f"the wiki may not be read without login ({problem.code}): {said}")
    raise ApiError(problem.code, f"the wiki refused the request ({problem.code[:40]}): {said}")
