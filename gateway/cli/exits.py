"""Exit statuses: 0 done, 2 wrong usage (click's own), and these."""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_TEMPORARY = 75  # EX_TEMPFAIL of sysexits.h: the same command may work later
EXIT_CONFIGURATION = 78  # EX_CONFIG
EXIT_INTERRUPTED = 130  # 128 + SIGINT
