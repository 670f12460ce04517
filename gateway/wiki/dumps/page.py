"""The pages of a dump, the wiki that it is of, and its errors."""

from __future__ import annotations

from msgspec import Struct

from gateway.base.errors import HearthError


class DumpError(HearthError):
    """The file is not an export, is damaged or ends early."""

    code = "bad_dump"


class SiteInfo(Struct):
    """``namespaces`` maps numbers to names; the main namespace's name is empty."""

    sitename: str = ""
    dbname: str = ""
    base: str = ""
    namespaces: dict[int, str] = {}


class DumpPage(Struct, frozen=True, kw_only=True):
    """A page at its newest revision. ``number`` counts all pages of the dump from 1.

    ``redirect`` is the target that the dump names. ``problem`` says why ``text`` is unusable; ``deleted`` means that
    the wiki deleted the text.
    """

    number: int
    title: str
    namespace: int
    revision: int
    model: str
    text: str
    redirect: str | None = None
    problem: str | None = None
    deleted: bool = False
