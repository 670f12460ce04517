"""Errors of upstream servers as errors of the gateway, with a remedy."""

from __future__ import annotations

import html
import re
from typing import Any

import msgspec

from gateway.base.errors import (
    HearthError,
    InvalidRequestError,
    ModelUnavailableError,
    OverloadedError,
    PromptTooLongError,
)
from gateway.base.patterns import any_case

RETRY_SECONDS = 1.0
# Raised by reading a reply in an unexpected form.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
_MOST_TEXT = 500
_TITLE = any_case(r"<title[^>]*>(.*?)</title>", re.S)
# Words with which servers without a code for it say that a prompt is too long.
_TOO_LONG = ("context length", "context size", "maximum model length")
# Codes of hearth for a reply that went wrong on a server that is well.
_WELL = frozenset({"bad_tool_call", "cancelled", "deadline_exceeded", "upstream_json"})
_NOT_SERVED = frozenset({502, 503, 504})


class LostError(ModelUnavailableError):
    """The server did not take the request, or stopped in the middle of it: another one may serve it."""


class SilentError(LostError):
    """The server said nothing for too long: only another one may serve the request in time."""


class FailedError(ModelUnavailableError):
    """The server took the request and failed with it: another one may do better."""


def lost(url: str, reason: str, kind: type[LostError] = LostError) -> LostError:
    return kind(f"the upstream server {url} {reason}; try again", retry_after=RETRY_SECONDS)


def malformed(url: str) -> LostError:
    return lost(url, "sent a reply in another form than OpenAI's")


def words_of(body: bytes) -> str:
    """The text of a reply without JSON, on one line; of a web page, its title."""
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        named = f' with the title "{" ".join(html.unescape(title[1]).split())}"' if title else ""
        text = f"a web page{named}, as no OpenAI-compatible server sends"
    return " ".join(text.split())[:_MOST_TEXT] or "without a reason"


def refusal(url: str, status: int, body: bytes, key: str, retry_after: str | None = None) -> HearthError:
    """The error for a reply with ``status``; ``key`` is masked in the server's words."""
    fields = _fields(body)
    said = str(fields.get("message") or words_of(body)).strip()[:_MOST_TEXT]
    if key:
        said = said.replace(key, "[redacted]")
    wait = float(retry_after) if retry_after and retry_after.isdecimal() else RETRY_SECONDS
    code, param = fields.get("code"), fields.get("param")
    if status in (401, 403):
        return ModelUnavailableError(
            f"the upstream server {url} refuses the key: set upstream.key", code="upstream_key"
        )
    if status == 404:
        return ModelUnavailableError(
            f"the upstream server {url} has no such address or model ({said}): correct upstream.urls or upstream.model",
            code="upstream_not_found",
        )
    if status < 400:
        return ModelUnavailableError(
            f"the upstream server {url} answers {status}, a redirect or nothing: correct upstream.urls",
            code="upstream_not_found",
        )
    if status == 429 or (status == 503 and code == "overloaded"):
        return OverloadedError(f"the upstream server {url} is busy: {said}", retry_after=wait)
    if code in _WELL:
        return HearthError(said, code=str(code), status=503, retry_after=wait)
    if status in _NOT_SERVED:
        return LostError(f"the upstream server {url} answered {status}: {said}", retry_after=wait)
    if 400 <= status < 500:
        if (
            code == "prompt_too_long"
            or "exceed" in str(fields.get("type"))
            or any(each in said for each in _TOO_LONG)
        ):
            tokens, limit = fields.get("n_prompt_tokens"), fields.get("n_ctx")
            known = (
                {"tokens": tokens, "limit": limit}
                if isinstance(tokens, int) and isinstance(limit, int)
                else {}
            )
            return PromptTooLongError(said, param="messages", details={**_details(fields), **known})
        name = param if isinstance(param, str) else None
        return InvalidRequestError(f"the upstream server {url} refuses the request: {said}", param=name)
    return FailedError(f"the upstream server {url} failed with status {status}: {said}", retry_after=wait)


def _details(fields: dict[str, Any]) -> dict[str, int | float | str]:
    details = fields.get("details")
    if not isinstance(details, dict):
        return {}
    return {name: value for name, value in details.items() if isinstance(value, int | float | str)}


def _fields(body: bytes) -> dict[str, Any]:
    """The fields of an error in OpenAI's form, or of a plain object."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    error = found.get("error", found)
    return error if isinstance(error, dict) else {"message": error}
