"""PostgreSQL's failures as errors with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from gateway.base.errors import HearthError

_RETRY_SECONDS = 2.0
_FULL_RETRY_SECONDS = 60.0


@contextmanager
def translated_faults(where: str) -> Iterator[None]:
    """Turn failures of server, network and disk into :class:`HearthError`; errors of the caller pass through."""
    try:
        yield
    except errors.LockNotAvailable as error:
        raise HearthError(
            f"another program has been writing to the database {where} for 10 s: try again",
            code="database_locked",
            status=503,
            retry_after=_RETRY_SECONDS,
        ) from error
    except errors.DiskFull as error:
        raise HearthError(
            f"no space left for the database {where}: free some disk space on its server",
            code="disk_full",
            status=503,
            retry_after=_FULL_RETRY_SECONDS,
        ) from error
    except psycopg.OperationalError as error:
        raise HearthError(
            f"the database {where} cannot be reached ({str(error).splitlines()[0]}): try again, or check store.url",
            code="database_unavailable",
            status=503,
            retry_after=_RETRY_SECONDS,
        ) from error
    except (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege) as error:
        raise HearthError(
            f"the database {where} cannot be written ({str(error).splitlines()[0]}): connect to the primary server, "
            "as the user who owns the schema `hearth`",
            code="database_unavailable",
            status=503,
        ) from error
