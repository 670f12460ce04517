"""Turn wikitext into what the store keeps: a page with its sections and index text, or a redirect."""

from __future__ import annotations

import apsw
import msgspec
from msgspec import Struct

from gateway.store.wiki import pages as store
from gateway.wiki.sketch import sketch
from gateway.wiki.source import Section
from gateway.wiki.wikitext import extract as extractor
from gateway.wiki.wikitext.extract import extract, redirect_target


class NewRedirect(Struct, frozen=True):
    title: str
    target: str


class Gone(Struct, frozen=True):
    """A page to remove."""

    title: str


Item = store.NewPage | NewRedirect | Gone


def prepare(title: str, revision: int, wikitext: str) -> store.NewPage | NewRedirect:
    """Extract a page. Slow for long pages: call it outside the writer thread."""
    target = redirect_target(wikitext)
    if target is not None:
        return NewRedirect(title, target)
    size = len(wikitext.encode("utf-8", "surrogatepass"))
    return page_of(title, revision, extract(wikitext), size, extractor.VERSION)


def page_of(title: str, revision: int, sections: list[Section], size: int, version: int) -> store.NewPage:
    """A page to store. ``size`` is in bytes of its source, ``version`` that of the extraction."""
    body = "\n\n".join(section.text for section in sections)
    return store.NewPage(
        title=title,
        revision=revision,
        sections=msgspec.json.encode(sections).decode(),
        headings="\n".join(section.heading for section in sections),
        body=body,
        size=size,
        extractor=version,
        sketch=sketch(body),
    )


def put(connection: apsw.Connection, item: Item, origin: str) -> None:
    if isinstance(item, Gone):
        store.delete_title(connection, item.title)
    elif isinstance(item, NewRedirect):
        store.put_redirect(connection, item.title, item.target, origin)
    else:
        store.put_page(connection, item, origin)
