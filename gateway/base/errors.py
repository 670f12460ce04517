"""Errors for users, each with a stable code, an HTTP status and a remedy."""

from __future__ import annotations

# nginx's status for a client that has left, for access log, metrics and request log.
CLIENT_GONE = 499


class HearthError(Exception):
    """Base of all expected errors.

    ``code`` is stable, for programs; subclasses give ``status`` and ``code`` as arguments of the class. ``retry_after``
    (seconds) is set exactly when a retry can help; ``param`` names the request field at fault; ``details`` are values
    for the client, such as ``tokens`` and ``limit``.
    """

    status: int = 500
    code: str = "internal"

    def __init_subclass__(cls, *, status: int | None = None, code: str | None = None) -> None:
        super().__init_subclass__()
        cls.status, cls.code = status or cls.status, code or cls.code

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


class InvalidRequestError(HearthError, status=400, code="invalid_request"):
    """The request is invalid; retrying it unchanged cannot help."""


class PromptTooLongError(InvalidRequestError, code="prompt_too_long"):
    """The prompt does not fit into the context. ``details`` has ``tokens`` and ``limit``."""


class TooLargeError(HearthError, status=413, code="request_too_large"):
    """The body exceeds the configured size."""


class UnauthorizedError(HearthError, status=401, code="unauthorized"):
    """No key, or an unknown one."""


class ForbiddenError(HearthError, status=403, code="forbidden"):
    """The key is valid but its role does not allow this."""


class NotFoundError(HearthError, status=404, code="not_found"):
    """The object does not exist, or belongs to another owner."""


class OverloadedError(HearthError, status=503, code="overloaded"):
    """Too many requests at once; retry after ``retry_after``."""


class DeadlineError(HearthError, status=504, code="deadline_exceeded"):
    """The request exceeded its deadline and was stopped."""


class ModelUnavailableError(HearthError, status=503, code="model_unavailable"):
    """The model host failed to load, crashed, or is broken. Retriable iff ``retry_after``."""


class ConfigurationError(HearthError, status=500, code="configuration"):
    """The configuration is invalid. The command line exits with status 78."""
