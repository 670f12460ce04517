"""Regular expressions of words as people write them: in capitals or not."""

from __future__ import annotations

import re
from functools import cached_property


def any_case(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Compile a pattern that ignores case."""
    return re.compile(pattern, re.I | flags)


class LatePattern:
    """A pattern as of :func:`any_case`, compiled at its first use: half of a server's start would go into hundreds."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return any_case(self._pattern, self._flags)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As ``re.Pattern.fullmatch``."""
        return self._compiled.fullmatch(text)
