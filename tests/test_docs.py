"""The documentation names only what exists, and the protocol page names everything."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from gateway.cli.main import COMMANDS
from gateway.config.sources import FIELDS, convert_value
from model_host import protocol

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
OTHERS = [ROOT / "CHANGELOG.md", *sorted((ROOT / "models").rglob("*.md"))]
FOLDERS = "gateway|model_host|clients|models|prompts|eval|tests|docs|deploy|benchmarks"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*|[\w-]+\.(?:lock|toml))`")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


def code_of(page: Path) -> str:
    """Fenced blocks and inline code, a piece a line: where commands are named, and not just words."""
    text = page.read_text(encoding="utf-8")
    blocks = [block for _, block in FENCE.findall(text)]
    inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return "\n".join([*blocks, *inline])


def test_there_are_pages() -> None:
    assert {"README.md", "docs/ARCHITECTURE.md", "docs/protocol.md"} <= {page_id(page) for page in PAGES}
    assert len(PATH.findall((ROOT / "docs" / "ARCHITECTURE.md").read_text())) > 30


@every_page
def test_named_files_exist(page: Path) -> None:
    assert [name for name in PATH.findall(page.read_text()) if not (ROOT / name).exists()] == []


def test_the_architecture_names_every_unit_and_every_folder() -> None:
    named = set(PATH.findall((ROOT / "docs" / "ARCHITECTURE.md").read_text()))
    units = {path.name for path in (ROOT / "gateway").iterdir() if path.is_dir() or path.suffix == ".py"}
    missing = units - {Path(name).parts[1] for name in named if name.startswith("gateway/")}
    assert {name for name in missing if not name.startswith("_")} == set()
    assert {
        f"{folder}/" for folder in ("prompts", "models", "eval", "benchmarks", "deploy", "tests")
    } <= named


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=page_id)
def test_lines_are_short(page: Path) -> None:
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    long = [n for n, line in enumerate(text.split("\n"), 1) if len(line) > 120 and line[:1] not in "|#>"]
    assert long == []


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


@every_page
def test_named_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", code_of(page), re.MULTILINE)) <= targets


@every_page
def test_named_commands_exist(page: Path) -> None:
    named = re.findall(r"^(?:\.venv/bin/)?hearth ([a-z][a-z-]*)", code_of(page), re.MULTILINE)
    assert set(named) <= set(COMMANDS)


@every_page
def test_named_settings_exist(page: Path) -> None:
    text = page.read_text()
    names = {name.lower().replace("__", ".") for name in re.findall(r"HEARTH_([A-Z]+__[A-Z_]+)", text)}
    assert names <= set(FIELDS)
    for language, block in FENCE.findall(text):
        if language == "toml":
            for section, values in tomllib.loads(textwrap.dedent(block)).items():
                for key, value in values.items():
                    convert_value(f"{section}.{key}", value, page_id(page), text=False)


def test_readme_tells_the_commands_first() -> None:
    first_block = FENCE.findall((ROOT / "README.md").read_text())[0][1]
    assert first_block.startswith("make run ")
    assert "\nmake test " in first_block


REQUESTS = [(f"Request `{kind.__struct_config__.tag}`", kind) for kind in get_args(protocol.Request)]
EVENTS = [(f"Event `{kind.__struct_config__.tag}`", kind) for kind in get_args(protocol.Event)]
PARTS = [
    (f"Part `{kind.__name__}`", kind) for kind in (protocol.Sampling, protocol.Message, protocol.TextPart)
]


@pytest.mark.parametrize(("heading", "kind"), [*REQUESTS, *EVENTS, *PARTS])
def test_the_protocol_page_lists_every_field(heading: str, kind: type) -> None:
    text = (ROOT / "docs" / "protocol.md").read_text()
    _, found, rest = text.partition(f"\n### {heading}\n")
    assert found, "this message is not documented"
    section = re.split(r"^#{2,3} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert rows == list(kind.__struct_fields__)  # type: ignore[attr-defined]


def test_the_protocol_page_lists_every_failure_code() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text().partition("\n## Failure codes\n")[2]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(get_args(protocol.FailureCode))


def test_the_protocol_page_gives_valid_examples() -> None:
    blocks = [block for _, block in FENCE.findall((ROOT / "docs" / "protocol.md").read_text())]
    lines = [line for block in blocks for line in block.splitlines() if "…}" not in line]
    requests = [line.removeprefix("→ ") for line in lines if '{"op":' in line]
    events = [line.removeprefix("← ") for line in lines if '{"event":' in line]
    assert len(requests) >= len(REQUESTS)
    assert len(events) >= 5
    for line in requests:
        protocol.decode_request(line.encode())
    for line in events:
        protocol.decode_event(line.encode())
