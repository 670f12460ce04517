"""What can go wrong with a wiki on another machine."""

from __future__ import annotations

from gateway.errors import HearthError


class WikiUnavailableError(HearthError):
    """The wiki cannot serve now: no connection, no reply in time, overloaded. ``retry_after`` is set."""

    status = 503
    code = "wiki_unavailable"


class WikiReplyError(HearthError):
    """The wiki's reply is of no use: not an API, a refusal, a redirect elsewhere. Trying again cannot help."""

    status = 502
    code = "wiki_reply"
