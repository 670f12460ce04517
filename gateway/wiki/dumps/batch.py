"""What an import does with the pages of one batch. Pure, so that it needs neither a dump nor a database."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from gateway.store.wiki.imports import Known
from gateway.wiki.dumps.page import DumpPage
from gateway.wiki.ingest import Gone, Item, NewRedirect, prepare
from gateway.wiki.wikitext import extract
from gateway.wiki.wikitext.extract import redirect_target

# A batch is as large as a transaction may be: storing it holds the writer lock for a fraction of a second.
_BATCH_PAGES = 256
_BATCH_CHARACTERS = 512 * 1024
# More failures than this are counted without a name; something is wrong with the dump as a whole then.
NAMED_FAILURES = 100
_WIKITEXT = ("", "wikitext")


class PageFailure(Struct, frozen=True):
    """A page of the dump that could not be taken, and why."""

    title: str
    reason: str


class Counts(Struct):
    """What became of the pages of a dump. ``failures`` names the first :data:`NAMED_FAILURES` of ``failed``."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    redirects: int = 0
    redirects_changed: int = 0  # of redirects: new ones, and those with another target
    other_namespaces: int = 0
    not_wikitext: int = 0
    deleted: int = 0  # whose text the wiki has withdrawn
    failed: int = 0
    removed: int = 0  # that were stored: deleted or of another kind now, or not in the dump any more (prune)
    sample_removed: int = 0
    failures: list[PageFailure] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Names that the import wrote or removed."""
        return self.added + self.updated + self.redirects_changed + self.removed

    def fail(self, title: str, reason: str) -> None:
        """Count a failure, with its name while there are few."""
        self.failed += 1
        if len(self.failures) < NAMED_FAILURES:
            self.failures.append(PageFailure(title, reason))

    def add(self, other: Counts) -> None:
        """Take in the counts of another batch."""
        for name in self.__struct_fields__:
            if name != "failures":
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures += other.failures[: NAMED_FAILURES - len(self.failures)]


class Batch:
    """Pages that are stored together."""

    def __init__(self) -> None:
        self.pages: list[DumpPage] = []
        self._characters = 0

    def add(self, page: DumpPage) -> None:
        """Put a page in."""
        self.pages.append(page)
        self._characters += len(page.text)

    @property
    def is_full(self) -> bool:
        """Whether it should be stored now."""
        return len(self.pages) >= _BATCH_PAGES or self._characters >= _BATCH_CHARACTERS

    @property
    def titles(self) -> list[str]:
        """The titles in it."""
        return [page.title for page in self.pages]


class BatchPlan(Struct):
    """What to store for a batch, and what it counts for."""

    items: list[Item] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def plan(pages: list[DumpPage], known: Mapping[str, Known], namespaces: frozenset[int]) -> BatchPlan:
    """Extract what is new or changed. ``known`` has the batch's titles that this wiki's pages are stored under."""
    made = BatchPlan()
    for page in pages:
        if page.namespace not in namespaces:
            made.counts.other_namespaces += 1
        elif page.deleted:
            made.counts.deleted += 1
            _remove(made, known.get(page.title))
        elif page.problem is not None:
            made.counts.fail(page.title, page.problem)
        elif page.redirect is None and page.model not in _WIKITEXT:
            made.counts.not_wikitext += 1
            _remove(made, known.get(page.title))
        else:
            _plan_page(made, page, known.get(page.title))
    return made


def _remove(made: BatchPlan, stored: Known | None) -> None:
    if stored is not None:
        made.counts.removed += 1
        made.items.append(Gone(stored.name))


def _plan_page(made: BatchPlan, page: DumpPage, stored: Known | None) -> None:
    target = page.redirect or redirect_target(page.text)
    if target is not None:
        made.counts.redirects += 1
        if stored is None or stored.revision is not None or stored.target != target:
            made.counts.redirects_changed += 1
            made.items.append(NewRedirect(page.title, target))
        return
    was_page = stored is not None and stored.revision is not None
    if stored is not None and (stored.revision, stored.extractor) == (page.revision, extract.VERSION):
        made.counts.unchanged += 1
        return
    try:
        made.items.append(prepare(page.title, page.revision, page.text))
    except Exception as error:  # one page of a million must not end the import
        made.counts.fail(page.title, f"its text could not be extracted ({type(error).__name__}: {error})")
        return
    made.counts.updated += was_page
    made.counts.added += not was_page
