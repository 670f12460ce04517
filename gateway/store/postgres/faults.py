"""PostgreSQL's failures as errors with a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from gateway.base.errors import ConfigurationError, HearthError

_RETRY_SECONDS = 2.0
_FULL_RETRY_SECONDS = 60.0
# How a server refuses a connection until somebody changes settings or server. libpq has no code for it, only the words,
# so the refusals of a server in another language count as temporary.
_REFUSALS = {
    re.compile(words): remedy
    for words, remedy in (
        (
            'database ".*" does not exist',
            "create it with `createdb -E UTF8 -T template0 -O USER DATABASE`, or correct store.url",
        ),
        (
            'role ".*" (does not exist|is not permitted to log in)',
            "create it with `createuser --pwprompt USER`, or correct the user in store.url",
        ),
        (
            "authentication failed for user|no password supplied",
            "correct the user in store.url, or the password in the file that its `passfile` names",
        ),
        (
            r"pg_hba\.conf|permission denied for database",
            "let this user connect to it from this machine (pg_hba.conf, GRANT CONNECT), or correct store.url",
        ),
        (
            "does not support SSL|certificate verify failed|root certificate file",
            "correct sslmode and sslrootcert in store.url",
        ),
    )
}


@contextmanager
def translated_faults(where: str) -> Iterator[None]:
    """Turn failures of server, network and disk into :class:`HearthError`; errors of the caller pass through.

    A connection that the server refuses until settings change is a ConfigurationError.
    """
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
        said = str(error).splitlines()[0]
        if remedy := next((text for words, text in _REFUSALS.items() if words.search(said)), None):
            raise ConfigurationError(
                f"the database {where} refuses the connection ({said.rpartition('FATAL:  ')[2]}): {remedy}",
                code="database_unavailable",
                status=503,
            ) from error
        raise HearthError(
            f"the database {where} cannot be reached ({said}): try again, or check store.url",
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
