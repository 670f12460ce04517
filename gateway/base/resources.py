"""Paths of the files that ship with the program.

In a checkout they are beside the package; in an installed wheel, in ``gateway/_bundled``.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent  # gateway/


def bundled(relative: str) -> Path:
    """Path of a shipped file or folder such as ``prompts`` or ``models/catalog.toml`` (it may not exist)."""
    installed = _PACKAGE / "_bundled" / relative
    return installed if installed.exists() else _PACKAGE.parent / relative


def sample_wiki() -> Path:
    """Folder of the sample wiki: one ``.wiki`` file of wikitext per page."""
    return _PACKAGE / "wiki" / "sample"


def web_page() -> Path:
    """Folder of the web page: HTML, style, icon and scripts."""
    return _PACKAGE / "web"
