"""Errors that reach a user: each has a stable code, an HTTP status and a sentence that says what to do."""

from __future__ import annotations

CLIENT_GONE = (
    499  # nginx's status; no client reads it, but the access log, the metrics and the request log do
)


class HearthError(Exception):
    """Base of every expected error.

    ``code`` is stable and for programs, ``message`` is for people. ``retry_after`` (seconds) is set exactly
    when trying again later can help; ``param`` names the request field at fault; ``details`` are numbers
    and strings worth showing (for example ``tokens`` and ``limit``).
    """

    status: int = 500
    code: str = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        param: str | None = None,
        details: dict[str, int | float | str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.status = status or type(self).status
        self.retry_after = retry_after
        self.param = param
        self.details = details or {}


class InvalidRequestError(HearthError):
    """The request itself is wrong; sending it again unchanged cannot help."""

    status = 400
    code = "invalid_request"


class PromptTooLongError(InvalidRequestError):
    """The prompt does not fit the context. ``details`` has ``tokens`` and ``limit``."""

    code = "prompt_too_long"


class TooLargeError(HearthError):
    """The body is over the configured size."""

    status = 413
    code = "request_too_large"


class UnauthorizedError(HearthError):
    """No key, or an unknown one."""

    status = 401
    code = "unauthorized"


class ForbiddenError(HearthError):
    """The key is valid but its role does not allow this."""

    status = 403
    code = "forbidden"


class NotFoundError(HearthError):
    """No such thing, or not the caller's."""

    status = 404
    code = "not_found"


class OverloadedError(HearthError):
    """Too much work at once; ``retry_after`` says when to come back."""

    status = 503
    code = "overloaded"


class DeadlineError(HearthError):
    """The request took longer than its deadline and was stopped."""

    status = 504
    code = "deadline_exceeded"


class ModelUnavailableError(HearthError):
    """The model host cannot serve: it failed to load, crashed, or is broken. Retriable iff ``retry_after``."""

    status = 503
    code = "model_unavailable"


class ConfigurationError(HearthError):
    """The configuration cannot work. The command line ends with status 78."""

    status = 500
    code = "configuration"
