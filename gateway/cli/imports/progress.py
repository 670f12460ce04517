"""The progress bar of an import. It counts bytes, because the number of pages is known only at the end."""

from __future__ import annotations

import time
from typing import NoReturn

from tqdm import tqdm

from gateway.cli.common.text import say
from gateway.wiki.dumps.importer import ImportProgress


class Bar:
    """A bar on stderr if that is a terminal and the bar is ``shown``; a ``talkative`` one also prints sentences there.

    :meth:`begin` begins another bar, :meth:`close` ends the last one.
    """

    def __init__(self, *, shown: bool, talkative: bool) -> None:
        self._off = None if shown else True  # None: tqdm checks whether stderr is a terminal
        self._talkative = talkative
        self._tqdm: tqdm[NoReturn] | None = None
        self._started = 0.0
        self._first = -1
        self.pages = 0  # read so far, including an earlier run

    def begin(self, size: int, label: str = "importing", initial: int = 0) -> None:
        """Begin a bar for ``size`` bytes (0: unknown), ``initial`` of which are done."""
        self.close()
        self._tqdm = tqdm(
            total=size or None,
            initial=initial,
            unit="B",
            unit_scale=True,
            desc=label,
            leave=False,
            disable=self._off,
        )
        self._started, self._first = time.monotonic(), -1

    def close(self) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
            self._tqdm = None

    def downloaded(self, have: int, total: int) -> None:
        """Show a download of ``total`` bytes (0: unknown)."""
        if self._tqdm is None:
            self.begin(total, "downloading", have)
        self._move(have)

    def imported(self, progress: ImportProgress) -> None:
        self.pages = progress.pages
        if self._tqdm is None or self._tqdm.disable:
            return
        if self._first < 0:
            self._first = progress.pages
        seconds = time.monotonic() - self._started
        rate = (progress.pages - self._first) / seconds if seconds > 0 else 0.0
        self._tqdm.set_description(progress.stage, refresh=False)
        self._tqdm.set_postfix_str(f"{progress.pages} pages, {rate:.0f} pages/s", refresh=False)
        self._move(progress.position)

    def say(self, sentence: str) -> None:
        """Print a sentence without breaking the bar."""
        if self._talkative:
            with tqdm.external_write_mode():
                say(sentence, err=True)

    def _move(self, position: int) -> None:
        if self._tqdm is not None:
            self._tqdm.update(position - self._tqdm.n)
