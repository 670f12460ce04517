"""Writes to the request log."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from gateway.base.errors import HearthError
from gateway.config.settings import LogSettings
from gateway.store.db import Database
from gateway.store.request_log import RequestRecord, add_record
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


class Recorder:
    """Writes records within the limits of the log. Does not raise: a reply matters more than its record."""

    def __init__(self, limits: LogSettings, database: Database, metrics: Metrics) -> None:
        self._limits = limits
        self._database = database
        self._metrics = metrics

    async def __call__(self, make: Callable[[], RequestRecord]) -> str:
        """Store the record that ``make`` returns, and delete the oldest over the limits. Counts failures.

        Returns why it is not stored; "" if it is.
        """
        limits = self._limits
        try:
            record = make()
            await self._database.write(
                lambda connection: add_record(
                    connection,
                    record,
                    max_records=limits.max_records,
                    max_record_bytes=limits.max_record_bytes,
                )
            )
        except HearthError as error:
            self._metrics.records_failed.inc()
            log.error("the request could not be recorded", reason=error.message)
            return error.message
        except Exception:
            self._metrics.records_failed.inc()
            log.exception("the request could not be recorded")
            return "internal error"
        return ""
