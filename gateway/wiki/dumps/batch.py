"""Decide what to store for the pages of one batch, without access to the dump or the database."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from gateway.store.wiki.pages import Known
from gateway.wiki.dumps.dump import DumpPage
from gateway.wiki.ingest import Gone, Item, NewRedirect, prepare
from gateway.wiki.wikitext import extract
from gateway.wiki.wikitext.extract import redirect_target

# Further failures are only counted: the dump as a whole has a fault then.
NAMED_FAILURES = 100
_WIKITEXT = ("", "wikitext")


class PageFailure(Struct, frozen=True):
    """A page of the dump that could not be imported."""

    title: str
    reason: str


class Counts(Struct):
    """Numbers of pages by outcome. ``failures`` names the first :data:`NAMED_FAILURES` of ``failed``."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    redirects: int = 0
    redirects_changed: int = 0  # of redirects: new ones, and those with another target
    other_namespaces: int = 0
    not_wikitext: int = 0
    deleted: int = 0  # the wiki deleted their text
    failed: int = 0
    removed: int = 0  # from the store: deleted, no longer wikitext, or pruned
    sample_removed: int = 0
    failures: list[PageFailure] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Names that the import wrote or removed."""
        return self.added + self.updated + self.redirects_changed + self.removed

    def fail(self, title: str, reason: str) -> None:
        self.failed += 1
        if len(self.failures) < NAMED_FAILURES:
            self.failures.append(PageFailure(title, reason))

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            if name != "failures":
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures += other.failures[: NAMED_FAILURES - len(self.failures)]


def plan(
    pages: list[DumpPage], known: Mapping[str, Known], namespaces: frozenset[int]
) -> tuple[list[Item], Counts]:
    """The items to store, and their counts. ``known`` holds the batch's names that the store has from this wiki."""
    items: list[Item] = []
    counts = Counts()
    for page in pages:
        stored = known.get(page.title)
        if page.namespace not in namespaces:
            counts.other_namespaces += 1
        elif page.deleted:
            counts.deleted += 1
            _remove(stored, items, counts)
        elif page.problem is not None:
            counts.fail(page.title, page.problem)
        elif page.redirect is None and page.model not in _WIKITEXT:
            counts.not_wikitext += 1
            _remove(stored, items, counts)
        elif (target := page.redirect or redirect_target(page.text)) is not None:
            counts.redirects += 1
            if stored is None or stored.revision is not None or stored.target != target:
                counts.redirects_changed += 1
                items.append(NewRedirect(page.title, target))
        else:
            _plan_page(page, stored, items, counts)
    return items, counts


def _remove(stored: Known | None, items: list[Item], counts: Counts) -> None:
    if stored is not None:
        counts.removed += 1
        items.append(Gone(stored.name))


def _plan_page(page: DumpPage, stored: Known | None, items: list[Item], counts: Counts) -> None:
    if stored is not None and (stored.revision, stored.extractor) == (page.revision, extract.VERSION):
        counts.unchanged += 1
        return
    try:
        items.append(prepare(page.title, page.revision, page.text))
    except Exception as error:  # one page of a million must not end the import
        counts.fail(page.title, f"its text could not be extracted ({type(error).__name__}: {error})")
        return
    is_update = stored is not None and stored.revision is not None
    counts.updated += is_update
    counts.added += not is_update
