"""Tools and named things for checklists from words."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.runs.planning.known import NamedThings
from gateway.runs.tool import RunTool, Toolbox, ToolOutput
from gateway.runs.tools.code import code_tools
from gateway.runs.tools.own import own_tools
from gateway.runs.tools.web import web_tools
from gateway.runs.tools.wiki import AskWikiArgs, SearchWikiArgs
from gateway.store.db import Database

KNOWN = NamedThings(
    projects={"shop": "shop"},
    files={"docs/opening.md": "docs/opening.md", "till.py": "src/till.py"},
    names={"total": "total"},
    any_project=True,
)


async def ask_wiki(calling: object, asked: AskWikiArgs) -> ToolOutput:
    """Answer a question."""
    return ToolOutput(asked.question)


async def search_wiki(calling: object, asked: SearchWikiArgs) -> ToolOutput:
    """Find pages."""
    return ToolOutput(asked.query)


@pytest.fixture
def tools(tmp_path: Path) -> Toolbox:
    database = Database(tmp_path / "hearth.db")
    wiki = [RunTool(AskWikiArgs, ask_wiki), RunTool(SearchWikiArgs, search_wiki)]
    own = own_tools(database, "Europe/Helsinki")
    return Toolbox([*wiki, *code_tools(database), *own, *web_tools(["example.org"])])
