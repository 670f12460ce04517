"""Files that ship with the program: prompts, the model catalog, the demo model, the sample wiki, the page.

In a checkout they lie beside the package; in an installed wheel under ``gateway/_bundled``.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent  # gateway/


def bundled(relative: str) -> Path:
    """Path of a shipped file or folder such as ``prompts`` or ``models/catalog.toml`` (it may not exist)."""
    installed = _PACKAGE / "_bundled" / relative
    return installed if installed.exists() else _PACKAGE.parent / relative


def sample_wiki() -> Path:
    """Folder of the embedded sample wiki: one ``.wiki`` file of MediaWiki wikitext a page."""
    return _PACKAGE / "wiki" / "sample"


def web_page() -> Path:
    """Folder of the web page's files: HTML, style, icon and scripts, all in one folder."""
    return _PACKAGE / "web"
