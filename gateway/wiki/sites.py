"""The wikis of the local store's pages: their names and the addresses of their pages, by origin."""

from __future__ import annotations

import apsw
import msgspec

from gateway.base.visible import visible
from gateway.config.settings import ServerSettings
from gateway.store.wiki import pages as store
from gateway.wiki.dumps.sample import ORIGIN, sample_loaded
from gateway.wiki.source import Site

SAMPLE = Site("esoteric programming languages", "https://esolangs.org/wiki/{title}")
# Of a wiki whose export names none, without the server's web page: a domain that never exists (RFC 2606).
UNKNOWN_ADDRESS = "https://wiki.invalid/{title}"
_STATE = "site "
_LONGEST_NAME = 100


def own_address(server: ServerSettings) -> str:
    """``wiki.page_url`` for pages whose wiki is not known: the server's own view of them."""
    if not server.page:
        return UNKNOWN_ADDRESS
    host = server.host.strip("[]")
    host = "localhost" if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{host}:{server.port}/#/wiki/{{title}}"


def named_site(name: str, base: str) -> Site:
    return Site(site_name(name), page_address(base))


def site_name(name: str) -> str:
    """A wiki's name as prompts show it: on one line, and not too long."""
    return " ".join(visible(name).split())[:_LONGEST_NAME]


def page_address(base: str) -> str:
    """``wiki.page_url`` for a wiki whose main page is at ``base``; empty if unknown."""
    if not base.startswith(("http://", "https://")):
        return ""
    script, query, _ = base.partition("?title=")
    if query:
        return script + "?title={title}"
    head, _, page = base.rpartition("/")
    return head + "/{title}" if page and not head.endswith("/") else ""


def put_site(connection: apsw.Connection, origin: str, site: Site) -> None:
    store.set_state(connection, _STATE + origin, msgspec.json.encode(site).decode())


def site_of(connection: apsw.Connection, origin: str) -> Site:
    """The site that pages of this origin are from; unknown for an import by an older version."""
    if origin == ORIGIN:
        return SAMPLE
    stored = store.get_state(connection, _STATE + origin)
    return msgspec.json.decode(stored, type=Site) if stored else Site()


def whole_site(connection: apsw.Connection) -> Site:
    """The site of the whole store; several wikis have all of their names, and the address of the first."""
    if sample_loaded(connection):
        return SAMPLE
    sites = [msgspec.json.decode(text, type=Site) for text in store.states(connection, _STATE)]
    names = " and ".join(dict.fromkeys(site.name for site in sites if site.name))
    return Site(names, next((site.page_url for site in sites if site.page_url), ""))
