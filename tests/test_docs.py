"""The documentation names only what exists, and the protocol page names everything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from gateway.settings import Settings
from model_host import protocol

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PATH = re.compile(r"`((?:gateway|model_host|models|prompts|tests|docs|deploy|benchmarks)/[\w./-]*)`")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_named_files_exist(page: Path) -> None:
    missing = [name for name in PATH.findall(page.read_text()) if not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_named_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)`", page.read_text())) <= targets


def test_named_commands_exist() -> None:
    named = {name for page in PAGES for name in re.findall(r"hearth ([a-z-]+)", page.read_text())}
    shown = subprocess.run(
        [sys.executable, "-m", "gateway.cli.main", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    commands = set(re.findall(r"^  ([a-z-]+) ", shown.stdout, re.MULTILINE))
    words = {"is", "and", "on", "needs", "answers", "runs", "does", "in", "by", "at"}
    assert named - commands - words == set()


def test_named_settings_exist() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for name in set(re.findall(r"HEARTH_([A-Z]+__[A-Z_]+)", text)):
        section, key = name.lower().split("__")
        values = Settings(data_dir=Path("/tmp"))
        assert hasattr(getattr(values, section), key), name


def test_the_protocol_page_is_complete() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text()
    requests, events = text.split("## Events")
    parts = (protocol.Sampling, protocol.Message, protocol.TextPart)
    headings = [
        (requests, f"### `{kind.__struct_config__.tag}`", kind) for kind in get_args(protocol.Request)
    ]
    headings += [(events, f"### `{kind.__struct_config__.tag}`", kind) for kind in get_args(protocol.Event)]
    headings += [(requests, f"### {kind.__name__}", kind) for kind in parts]
    for page, heading, kind in headings:
        section = page[page.index(heading) :]
        fields = section[: section.index(".\n", section.index("Fields:"))]
        assert [name for name in kind.__struct_fields__ if f"`{name}`" not in fields] == [], kind
    assert [code for code in get_args(protocol.FailureCode) if f"`{code}`" not in text] == []
