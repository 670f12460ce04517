"""Structured logs on stderr: one event per line, with the request ID, secrets redacted."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from gateway.base.redact import MARK, redact
from gateway.base.visible import escaped
from gateway.config.settings import LogSettings

_SECRET_NAMES = frozenset(
    {"authorization", "x-api-key", "api_key", "key", "token", "secret", "password", "cookie"}
)
# Libraries that log each step at info level.
_QUIET = ("uvicorn.error", "httpx2", "httpcore2", "sse_starlette.sse", "asyncio", "mcp")
# Kept at each end of a long traceback.
_TRACEBACK_LINES = 60


def clean_event(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Redact secret fields and secrets in other texts, and escape invisible characters."""
    return {name: _clean(name, value) for name, value in event.items()}


def _clean(name: str, value: Any) -> Any:
    if name.lower() in _SECRET_NAMES and value is not None:
        return MARK
    if isinstance(value, str):
        return escaped(redact(value)[0])
    if isinstance(value, dict):
        return {inner: _clean(str(inner), item) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", item) for item in value]
    return value


def _traceback(exc_info: ExcInfo) -> str:
    """Format a traceback; omit the middle of a very long one, as of an endless recursion."""
    lines = "".join(traceback.format_exception(*exc_info)).rstrip("\n").split("\n")
    if (left_out := len(lines) - 2 * _TRACEBACK_LINES) > 0:
        lines[_TRACEBACK_LINES:-_TRACEBACK_LINES] = [f"... {left_out} lines left out ..."]
    return "\n".join(lines)


def configure(settings: LogSettings) -> None:
    """Set up structlog, and route the logging of libraries through it."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    renderer: Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if settings.json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=28)
    )
    # Tracebacks are formatted before the redaction, because exceptions may quote clients.
    lines = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.ExceptionRenderer(_traceback),
            clean_event,
            renderer,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(lines)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
