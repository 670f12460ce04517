"""Errors for users, each with a stable code, an HTTP status and a remedy."""

from __future__ import annotations

# nginx's status for a client that has left, for access log, metrics and request log.
CLIENT_GONE = 499


class HearthError(Exception):
    """Base of all expected errors.

    ``code`` is stable, for programs. ``retry_after`` (seconds) is set exactly when a retry can help; ``param`` names
    the request field at fault; ``details`` are values for the client, such as ``tokens`` and ``limit``.
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
    """The request is invalid; retrying it unchanged cannot help."""

    status = 400
    code = "invalid_request"


class PromptTooLongError(InvalidRequestError):
    """The prompt does not fit into the context. ``details`` has ``tokens`` and ``limit``."""

    code = "prompt_too_long"


class TooLargeError(HearthError):
    """The body exceeds the configured size."""

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
    """The object does not exist, or belongs to another owner."""

    status = 404
    code = "not_found"


class OverloadedError(HearthError):
    """Too many requests at once; retry after ``retry_after``."""

    status = 503
    code = "overloaded"


class DeadlineError(HearthError):
    """The request exceeded its deadline and was stopped."""

    status = 504
    code = "deadline_exceeded"


class ModelUnavailableError(HearthError):
    """The model host failed to load, crashed, or is broken. Retriable iff ``retry_after``."""

    status = 503
    code = "model_unavailable"


class ConfigurationError(HearthError):
    """The configuration is invalid. The command line exits with status 78."""

    status = 500
    code = "configuration"
