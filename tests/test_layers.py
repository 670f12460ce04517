"""The import rules hold, and the checker sees each of them broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layering import HEIGHTS, MAX_LINES, missing, modules, violations

ROOT = Path(__file__).resolve().parent.parent


def test_this_project_keeps_its_rules() -> None:
    assert len(modules(ROOT, "gateway")) > 50
    assert len(modules(ROOT, "model_host")) > 10
    assert len(modules(ROOT, "clients")) > 10
    assert violations(ROOT) == []


def test_the_rules_name_nothing_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(ROOT) == []
    monkeypatch.setitem(HEIGHTS, "castles_in_the_air", 40)
    assert missing(ROOT) == ["gateway.castles_in_the_air"]


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "deploy", "models"])
def test_other_files_are_no_longer_than_those_of_the_packages(folder: str) -> None:
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    assert [path for path in files if path.read_text(encoding="utf-8").count("\n") > MAX_LINES] == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        (
            "model_host/loop.py",
            "from gateway.base.errors import HearthError\n",
            "the model host imports gateway.base.errors",
        ),
        ("model_host/batching/slots.py", "import numpy as np\n", "model_host.batching.slots imports numpy"),
        ("model_host/batching/slots.py", "def f():\n    # late\n    import llama_cpp\n", "imports llama_cpp"),
        (
            "model_host/batching/scheduler.py",
            "from model_host.engine.engine import Engine\n",
            "imports model code",
        ),
        ("gateway/api/ask/routes.py", "import llama_cpp.llama\n", "the gateway imports llama_cpp"),
        ("gateway/ask/flow.py", "from model_host import request\n", "not model_host.protocol alone"),
        ("gateway/ask/flow.py", "from gateway.api import fields\n", "not below it"),
        ("gateway/ask/flow.py", "from ..api import fields\n", "not below it"),
        ("gateway/store/db.py", "from gateway.wiki.source import Page\n", "not below it"),
        ("gateway/ask/flow.py", "from gateway.wiki.wikitext.extract import parse\n", "not below it"),
        ("gateway/base/errors.py", "from gateway.store import db\n", "not below it"),
        ("gateway/wiki/local.py", "def f(c):\n    c.execute(q)\n", "statements run in gateway/store only"),
        ("gateway/wiki/local.py", 'QUERY = "SELECT title FROM page"\n', "SQL outside gateway/store"),
        ("gateway/novelty.py", "", "has no place"),
        (
            "gateway/api/ask/routes.py",
            "def f():\n    from gateway.base.errors import HearthError\n",
            "no comment says why",
        ),
        ("gateway/api/ask/routes.py", "x = 1\n" * (MAX_LINES + 1), "over the limit"),
        ("gateway/api/mcp/tools.py", "from mcp_types import Tool\n", "know mcp"),
        ("gateway/store/db.py", "import psycopg\n", "knows psycopg"),
        ("clients/irc/bot.py", "import gateway.base.errors\n", "a client imports gateway.base.errors"),
        ("clients/irc/bot.py", "from model_host import protocol\n", "a client imports model_host.protocol"),
        ("clients/irc/bot.py", "import pydle\n", "know pydle"),
        ("gateway/api/ask/routes.py", "import clients.irc.protocol.wire\n", "the gateway imports a client"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    target = tmp_path / file
    target.parent.mkdir(parents=True)
    target.write_text(text)
    found = violations(tmp_path)
    assert any(complaint in each for each in found), found


def test_a_cycle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "gateway" / "ask"
    package.mkdir(parents=True)
    (package / "a.py").write_text("from gateway.ask.b import x\n")
    (package / "b.py").write_text("def f():\n    # later\n    import gateway.ask.a\n")
    assert "import cycle: gateway.ask.a -> gateway.ask.b -> gateway.ask.a" in violations(tmp_path)


def test_a_cycle_of_imports_for_type_checking_is_found(tmp_path: Path) -> None:
    package = tmp_path / "model_host"
    package.mkdir()
    (package / "a.py").write_text("from model_host.b import B\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from model_host.a import A\n"
    )
    assert "import cycle: model_host.a -> model_host.b -> model_host.a" in violations(tmp_path)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "gateway/ask/flow.py",
            "from gateway.wiki.source import Page\nfrom gateway.base.errors import HearthError\n",
        ),
        (
            "gateway/ask/flow.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import gateway.config.settings\n",
        ),
        ("gateway/wiki/local.py", '"""Docstrings may say SELECT a FROM b."""\n'),
        (
            "model_host/engine/engine.py",
            "import llama_cpp\nfrom model_host.engine.vocabulary import Vocabulary\n",
        ),
        (
            "gateway/server/app.py",
            "def f():\n    # Only where it is needed.\n    from gateway.config import settings\n",
        ),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, file: str, text: str) -> None:
    target = tmp_path / file
    target.parent.mkdir(parents=True)
    target.write_text(text)
    assert violations(tmp_path) == []


def test_long_files_on_average_are_found(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "app.py").write_text("x = 1\n" * 200)
    assert any("half of all files" in each for each in violations(tmp_path))
