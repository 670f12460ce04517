"""Errors of a wiki on another machine."""

from __future__ import annotations

from typing import Literal

from gateway.base.errors import HearthError

# Labels of the metrics. overload: lag, rate limits and 5xx; reply: not a reply of MediaWiki; elsewhere: an address
# that may not be contacted.
TroubleKind = Literal["connection", "timeout", "overload", "reply", "refused", "elsewhere"]


class WikiUnavailableError(HearthError):
    """The wiki cannot serve now; a retry may succeed. ``retry_after`` is set."""

    status = 503
    code = "wiki_unavailable"

    def __init__(self, message: str, *, retry_after: float, kind: TroubleKind = "connection") -> None:
        super().__init__(message, retry_after=retry_after)
        self.kind = kind


class WikiReplyError(HearthError):
    """The wiki's reply is unusable: not an API, a refusal, a redirect elsewhere. A retry cannot help."""

    status = 502
    code = "wiki_reply"

    def __init__(self, message: str, *, kind: TroubleKind = "reply") -> None:
        super().__init__(message)
        self.kind = kind
