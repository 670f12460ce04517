"""SQLite's failures as errors with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from gateway.base.errors import ConfigurationError, HearthError

_BUSY_RETRY_SECONDS = 2.0
_FULL_RETRY_SECONDS = 60.0


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn failures of the environment (disk, locks, corruption) into :class:`HearthError`.

    Errors of the caller, such as a violated constraint or wrong SQL, pass through unchanged.
    """
    try:
        yield
    except apsw.FullError as error:
        raise no_space(path) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise ConfigurationError(
            f"the database {path} is damaged or not an SQLite database ({error}): restore a backup, "
            "or move the file away to start with an empty one",
            code="database_corrupt",
        ) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise HearthError(
            f"the database {path} is locked by another program: try again, or stop that program",
            code="database_locked",
            status=503,
            retry_after=_BUSY_RETRY_SECONDS,
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError) as error:
        raise ConfigurationError(
            f"the database {path} cannot be opened for writing ({error}): check that its folder exists "
            "and belongs to the user who runs hearth, or choose another --data-dir",
            code="database_unavailable",
        ) from error
    except apsw.IOError as error:
        # The index of the write-ahead log could not grow: SQLite has no code of its own for a full disk there.
        if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE:
            raise no_space(path) from error
        raise HearthError(
            f"the disk failed under the database {path} ({error}): check the disk and the system's log",
            code="database_io",
            status=503,
        ) from error


def no_space(path: Path) -> HearthError:
    """The disk of the file is full: what was written last is not there, and everything else is."""
    return HearthError(
        f"no space left for the database {path}: free some disk space",
        code="disk_full",
        status=503,
        retry_after=_FULL_RETRY_SECONDS,
    )
