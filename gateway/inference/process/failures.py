"""Errors with a remedy for the failures of a host."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from gateway.base.errors import (
    HearthError,
    InvalidRequestError,
    ModelUnavailableError,
    OverloadedError,
    PromptTooLongError,
)
from model_host.protocol import Failed

# Short, because a new host starts at once after a crash.
RETRY_SECONDS = 1.0
LONGEST_RETRY = 300.0  # longer estimates are unreliable

# Signals that other programs send to end a process. A crash has another signal, or an exit code.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})

# The codes of invalid requests, and the field at fault if the host does not name it.
_INVALID = {
    "bad_request": None,
    "bad_grammar": "grammar",
    "bad_template": "messages",
    "line_too_long": None,
    "reply_too_long": None,
}

# Reported by a host that cannot load the model. Another start with the same file would fail, too.
LOAD_FAILURES = {
    "model_missing": "fetch the model with `hearth pull`, or correct `model.name`, `embedding.model` or `rerank.model`",
    "model_corrupt": "delete the file and fetch it again with `hearth pull`",
    "model_unsupported": "choose another model: `hearth models` lists supported ones",
    "adapter_unusable": "correct `model.adapters`: name LoRA adapters in GGUF that were trained for this model",
    "out_of_memory": "use a smaller model or a smaller context; `hearth doctor` says what fits",
}


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """Why a child ends, and the error for those who wait for it or use it.

    ``asked`` and ``idle`` end a healthy child; a ``refused`` one reported that it cannot load the model; a ``killed``
    one was ended or suspended by another program, which says nothing about the next one; ``crashed`` is everything else
    and counts for the breaker.
    """

    kind: Literal["asked", "idle", "refused", "killed", "crashed"]
    error: HearthError

    @property
    def gentle(self) -> bool:
        return self.kind in ("asked", "idle")

    @property
    def sudden(self) -> bool:
        return self.kind in ("killed", "crashed")


def stopped(kind: Literal["asked", "idle"]) -> LifeEnd:
    error = ModelUnavailableError("the model host was stopped; try again", retry_after=RETRY_SECONDS)
    return LifeEnd(kind, error)


def crashed(what: str, last_words: str | None = None, *, killed: bool = False) -> LifeEnd:
    """The end of a child that ``what`` (died, hung, or broke the protocol); ``last_words`` is its last stderr line.

    ``killed``: another program has ended or suspended it.
    """
    said = f"; its last line was: {last_words}" if last_words else ""
    error = ModelUnavailableError(f"the model host {what}{said}", retry_after=RETRY_SECONDS)
    return LifeEnd("killed" if killed else "crashed", error)


def died(code: int, last_words: str | None, *, out_of_memory: bool) -> LifeEnd:
    """Classify the unexpected end of a child by its return code, in the form of ``subprocess``.

    ``out_of_memory``: the kernel has killed processes for memory in the meantime.
    """
    # A host ends with 0 only when asked to.
    killed = code == 0 or (-code in _FROM_OUTSIDE and not (-code == signal.SIGKILL and out_of_memory))
    return crashed(describe_exit(code, out_of_memory=out_of_memory), last_words, killed=killed)


def describe_exit(code: int, *, out_of_memory: bool = False) -> str:
    """Describe a return code of ``subprocess``, as in "was killed by SIGSEGV"."""
    if code == 0:
        return "was ended by another program"
    if code > 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " because memory ran out" if out_of_memory and -code == signal.SIGKILL else ""
    return f"was killed by {name}{hint}"


def load_failure(event: Failed) -> ModelUnavailableError:
    """The error for a host's report that it cannot load the model. Not retriable: the same file fails again."""
    return ModelUnavailableError(
        f"the model cannot be loaded: {event.message}; {LOAD_FAILURES[event.code]}",
        code=event.code,
        details=dict(event.details),
    )


def request_failure(event: Failed, names: Mapping[str, str] | None = None) -> HearthError:
    """The error for a request that the host answered with ``failed``.

    ``names`` maps fields of the protocol to those of the caller's API where they differ.
    """
    if event.code == "bad_grammar":
        field = str(event.details.get("field", _INVALID[event.code]))
        name = (names or {}).get(field, field)
        # Some APIs show only the message of an error.
        event = replace(event, message=f"`{name}`: {event.message}", details={**event.details, "field": name})
    code, message, details = event.code, event.message, dict(event.details)
    match code:
        case "prompt_too_long":
            return PromptTooLongError(message, param="messages", details=details)
        case _ if code in _INVALID:
            given = details.pop("field", _INVALID[code])
            param = given if isinstance(given, str) else None
            return InvalidRequestError(message, code=code, param=param, details=details)
        case "bad_tool_call":
            message += "; try again, or set `tool_choice` to required: then calls are always well-formed"
            return HearthError(message, code=code, status=503, retry_after=RETRY_SECONDS)
        case "overloaded" | "shutting_down":
            wait = details.get("wait_seconds")
            seconds = min(max(RETRY_SECONDS, wait), LONGEST_RETRY) if isinstance(wait, int | float) else None
            return OverloadedError(message, code=code, retry_after=seconds or RETRY_SECONDS, details=details)
    retry_after = RETRY_SECONDS if event.retriable else None
    if code in LOAD_FAILURES:
        message = f"{message}; {LOAD_FAILURES[code]}"
        return ModelUnavailableError(message, code=code, retry_after=retry_after, details=details)
    message = f"the model host failed: {message}"
    if event.retriable:
        return ModelUnavailableError(message, retry_after=retry_after, details=details)
    return HearthError(message, details=details)


def fresh(error: HearthError) -> HearthError:
    """A copy to raise: one exception raised in several tasks would collect the tracebacks of all."""
    return type(error)(
        error.message,
        code=error.code,
        status=error.status,
        retry_after=error.retry_after,
        param=error.param,
        details=dict(error.details),
    )
