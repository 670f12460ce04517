"""Small MediaWiki XML exports for tests."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "<siteinfo><sitename>Test wiki</sitename><dbname>test</dbname><base>https://wiki.test/wiki/Main_Page</base>"
    '<namespaces><namespace key="-1" case="first-letter">Special</namespace><namespace key="0" />'
    '<namespace key="1">Talk</namespace><namespace key="4">Project</namespace></namespaces></siteinfo>\n'
)
TAIL = "</mediawiki>\n"


def revision(
    text: str, number: int = 1, timestamp: str = "2026-01-01T00:00:00Z", model: str = "wikitext"
) -> str:
    return (
        f"<revision><id>{number}</id><timestamp>{timestamp}</timestamp><contributor><username>U</username>"
        f"<id>99</id></contributor><comment>c</comment><model>{model}</model><format>text/x-wiki</format>"
        f'<text bytes="{len(text.encode())}" xml:space="preserve">{escape(text)}</text></revision>'
    )


def page(
    title: str,
    text: str = "",
    number: int = 1,
    *,
    namespace: int = 0,
    redirect: str | None = None,
    revisions: Iterable[str] | None = None,
) -> str:
    target = f"<redirect title={quoteattr(redirect)} />" if redirect else ""
    body = "".join(revisions) if revisions is not None else revision(text, number)
    return f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>1</id>{target}{body}</page>\n"


def export(*pages: str) -> bytes:
    return (HEAD + "".join(pages) + TAIL).encode()
