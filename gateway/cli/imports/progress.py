"""The progress bar of an import: by bytes read, because how many pages will come is not known before the end."""

from __future__ import annotations

import time
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

from gateway.cli.common.text import say
from gateway.wiki.dumps.importer import ImportProgress


class Bar:
    """On stderr, and only where that is a terminal. ``talkative`` also prints sentences there."""

    def __init__(self, *, shown: bool, talkative: bool) -> None:
        self._off = None if shown else True  # None: tqdm looks whether stderr is a terminal
        self._talkative = talkative
        self._tqdm: tqdm[NoReturn] | None = None
        self._started = 0.0
        self._first = -1
        self.pages = 0  # read so far, those of an earlier run included

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
            self._tqdm = None

    def begin(self, size: int, label: str = "importing", initial: int = 0) -> None:
        """A bar for ``size`` bytes (0: unknown), ``initial`` of which were there before."""
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

    def downloaded(self, have: int, total: int) -> None:
        """Bytes of a download that are here, of so many in all (0: unknown)."""
        if self._tqdm is None:
            self.begin(total, "downloading", have)
        self._move(have)

    def imported(self, progress: ImportProgress) -> None:
        """How far the import is."""
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
        """A sentence for the user, beside the bar."""
        if self._talkative:
            with tqdm.external_write_mode():
                say(sentence, err=True)

    def _move(self, position: int) -> None:
        if self._tqdm is not None:
            self._tqdm.update(position - self._tqdm.n)
