"""The report of an import."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.cli.common.text import table
from gateway.config.settings import WikiSettings
from gateway.wiki.dumps.importer import ImportReport
from gateway.wiki.sites import UNKNOWN_ADDRESS, page_address


def report_text(report: ImportReport, source: str, seconds: float) -> str:
    """List the counts, and the failed pages by title."""
    counts = report.counts
    read = counts.added + counts.updated + counts.unchanged + counts.redirects
    read += counts.other_namespaces + counts.not_wikitext + counts.deleted + counts.failed
    name = report.site.sitename or report.site.dbname
    rows = [
        ["added", str(counts.added)],
        ["updated", str(counts.updated)],
        ["unchanged", str(counts.unchanged)],
        ["redirects", f"{counts.redirects}, {counts.redirects_changed} of them new or changed"],
        ["in other namespaces", str(counts.other_namespaces)],
        ["not wikitext", str(counts.not_wikitext)],
        ["text deleted", str(counts.deleted)],
        ["failed", str(counts.failed)],
        ["removed", str(counts.removed)],
    ]
    lines = [
        f"{name or source}: {read} pages read in {seconds:.1f} s"
        + (f", {report.resumed_after} of them by an earlier run" if report.resumed_after else ""),
        table(rows),
    ]
    lines += [f"failed: {failure.title}: {failure.reason}" for failure in counts.failures]
    if counts.failed > len(counts.failures):
        lines.append(f"and {counts.failed - len(counts.failures)} more that failed")
    return "\n".join(lines)


def notices(report: ImportReport, settings: WikiSettings, others: Mapping[str, int]) -> list[str]:
    """Notices: the sample was removed, links lead elsewhere, or two wikis are mixed."""
    found = []
    if report.counts.sample_removed:
        found.append(
            f"the import replaced the built-in sample wiki ({report.counts.sample_removed} pages and redirects), "
            "which is not loaded again"
        )
    address = page_address(report.site.base)
    if settings.page_url and address and address != settings.page_url:
        found.append(
            f"citations link to {settings.page_url}, as wiki.page_url says, but this wiki's pages are at {address}: "
            "remove the setting"
        )
    if not settings.page_url and not address:
        found.append(
            f"citations link to {UNKNOWN_ADDRESS}, because the export does not say where the wiki is: "
            "set wiki.page_url"
        )
    for origin, count in others.items():
        found.append(
            f"the store also has {count} pages and redirects of `{origin}`; where titles are the same, the page "
            "imported last replaces the other"
        )
    return found
