"""How failures of the host become errors that a user can act on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
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

# A new host can be started at once, so a client need not wait long after a crash.
RETRY_SECONDS = 1.0
LONGEST_RETRY = 300.0  # an estimate beyond this is a guess

# What a host may report before it is ready. Starting it again on the same file would fail the same way.
LOAD_FAILURES = frozenset({"model_missing", "model_corrupt", "model_unsupported", "out_of_memory"})

# What others send to end a process; one that fails by itself dies of another signal, or ends with an exit code.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})

_REMEDY = {
    "model_missing": "fetch the model with `hearth pull`, or correct `model.name` or `embedding.model`",
    "model_corrupt": "delete the file and fetch it again with `hearth pull`",
    "model_unsupported": "choose another model: `hearth models` lists those that work",
    "out_of_memory": "use a smaller model or a smaller context; `hearth doctor` says what fits",
}


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """Why a child's life ends, and what those who wait for it or use it are told.

    ``asked`` and ``idle`` end a healthy child; ``refused`` is a child that said it cannot load the model; ``killed`` is
    one that another program ended or stopped, which says nothing of the next one; ``crashed`` is everything else and
    counts for the breaker.
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
    """The end of a healthy child."""
    error = ModelUnavailableError("the model host was stopped; try again", retry_after=RETRY_SECONDS)
    return LifeEnd(kind, error)


def crashed(what: str, last_words: str | None = None) -> LifeEnd:
    """The end of a child that ``what`` (it died, hung, or broke the protocol). ``last_words``: its last stderr line."""
    return LifeEnd("crashed", _sudden_end(what, last_words))


def hung(what: str, last_words: str | None, *, stopped: bool) -> LifeEnd:
    """The end of a child that gives no sign of life; ``stopped``: another program has suspended it."""
    if stopped:
        return LifeEnd("killed", _sudden_end(f"was stopped by another program and {what}", last_words))
    return crashed(what, last_words)


def died(code: int, last_words: str | None, *, out_of_memory: bool) -> LifeEnd:
    """The end of a child that has exited by itself, with a return code as ``subprocess`` gives it.

    ``out_of_memory``: the kernel was killing for memory then.
    """
    # A host ends with 0 only when it is told to.
    killed = code == 0 or (-code in _FROM_OUTSIDE and not (-code == signal.SIGKILL and out_of_memory))
    error = _sudden_end(describe_exit(code, out_of_memory=out_of_memory), last_words)
    return LifeEnd("killed" if killed else "crashed", error)


def describe_exit(code: int, *, out_of_memory: bool = False) -> str:
    """A return code as ``subprocess`` gives it, in words."""
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


def _sudden_end(what: str, last_words: str | None) -> ModelUnavailableError:
    said = f"; its last line was: {last_words}" if last_words else ""
    return ModelUnavailableError(f"the model host {what}{said}", retry_after=RETRY_SECONDS)


def load_failure(event: Failed) -> ModelUnavailableError:
    """A host's own report that it cannot load the model. Not retriable: the same file fails again."""
    return ModelUnavailableError(
        f"the model cannot be loaded: {event.message}; {_REMEDY[event.code]}",
        code=event.code,
        details=dict(event.details),
    )


def request_failure(event: Failed, names: Mapping[str, str] | None = None) -> HearthError:
    """The error for a request that the host answered with ``failed``.

    ``names`` says what the caller's API calls fields of the protocol, where it has another name for one.
    """
    if event.code == "bad_grammar":
        field = str(event.details.get("field", _FIELDS[event.code]))
        name = (names or {}).get(field, field)
        # Some APIs show nothing of an error but its message.
        event = replace(event, message=f"`{name}`: {event.message}", details={**event.details, "field": name})
    return _REQUEST_FAILURES.get(event.code, _internal)(event)


def _too_long(event: Failed) -> HearthError:
    return PromptTooLongError(event.message, param="messages", details=dict(event.details))


def _invalid(event: Failed) -> HearthError:
    details = dict(event.details)
    field = details.pop("field", _FIELDS.get(event.code))
    param = field if isinstance(field, str) else None
    return InvalidRequestError(event.message, code=event.code, param=param, details=details)


def _bad_tool_call(event: Failed) -> HearthError:
    message = (
        f"{event.message}; try again, or set `tool_choice` to required: then calls are always well-formed"
    )
    return HearthError(message, code=event.code, status=503, retry_after=RETRY_SECONDS)


def _overloaded(event: Failed) -> HearthError:
    wait = event.details.get("wait_seconds")
    seconds = (
        RETRY_SECONDS if not isinstance(wait, int | float) else min(max(RETRY_SECONDS, wait), LONGEST_RETRY)
    )
    return OverloadedError(event.message, code=event.code, retry_after=seconds, details=dict(event.details))


def _unavailable(event: Failed) -> HearthError:
    message = f"{event.message}; {_REMEDY[event.code]}"
    retry_after = RETRY_SECONDS if event.retriable else None
    return ModelUnavailableError(
        message, code=event.code, retry_after=retry_after, details=dict(event.details)
    )


def _internal(event: Failed) -> HearthError:
    message = f"the model host failed: {event.message}"
    if event.retriable:
        return ModelUnavailableError(message, retry_after=RETRY_SECONDS, details=dict(event.details))
    return HearthError(message, details=dict(event.details))


# The field at fault, where the host does not say.
_FIELDS = {"bad_grammar": "grammar", "bad_template": "messages", "tools_unsupported": "tools"}

_REQUEST_FAILURES: dict[str, Callable[[Failed], HearthError]] = {
    "prompt_too_long": _too_long,
    "bad_request": _invalid,
    "bad_grammar": _invalid,
    "bad_template": _invalid,
    "tools_unsupported": _invalid,
    "bad_tool_call": _bad_tool_call,
    "line_too_long": _invalid,
    "reply_too_long": _invalid,
    "overloaded": _overloaded,
    "shutting_down": _overloaded,
    **dict.fromkeys(LOAD_FAILURES, _unavailable),
}
