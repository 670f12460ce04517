"""The import rules of docs/ARCHITECTURE.md, checked on the syntax trees."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A module may import from its own layer and from lower ones (larger numbers).
LAYERS = {
    "gateway.cli": 0,
    "gateway.serve": 1,
    "gateway.app": 2,
    "gateway.connection": 2,
    "gateway.api": 3,
    "gateway.ask": 4,
    "gateway.wiki": 4,
    "gateway.auth": 4,
    "gateway.metrics": 4,
    "gateway.inference": 5,
    "gateway.store": 5,
    "gateway.prompts": 5,
}
BOTTOM = 6  # settings, errors, catalog, resources, …
FLOWS = ("gateway.ask", "gateway.wiki")
# What one flow may see of another: values and interfaces.
SHARED = {"gateway.wiki.source"}
HEAVY = {"llama_cpp", "numpy"}
MAY_BE_HEAVY = {"model_host.engine", "model_host.sampling", "model_host.vocabulary"}


def modules(root: Path) -> dict[str, ast.Module]:
    """Every module of both packages by its dotted name."""
    found = {}
    for package in ("gateway", "model_host", "clients"):
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def imports(tree: ast.Module) -> set[str]:
    """Dotted names of all imported modules; ``from a import b`` counts as ``a`` and ``a.b``."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def layer(module: str) -> int:
    return next((n for prefix, n in LAYERS.items() if f"{module}.".startswith(f"{prefix}.")), BOTTOM)


def flow(module: str) -> str | None:
    return next((prefix for prefix in FLOWS if f"{module}.".startswith(f"{prefix}.")), None)


def broken_rules(root: Path) -> list[str]:
    trees = modules(root)
    broken = []
    for module, tree in trees.items():
        for name in imports(tree):
            top = name.partition(".")[0]
            if top in HEAVY and module not in MAY_BE_HEAVY:
                broken.append(f"{module} imports {name}")
            if name not in trees:
                continue  # not a module of ours, or a name inside one
            if module.startswith("model_host") and not name.startswith("model_host"):
                broken.append(f"{module} imports {name}")
            if module.startswith("clients") and not name.startswith("clients"):
                broken.append(f"{module} imports {name}")
            if module.startswith("gateway"):
                broken += [f"{module} imports {why}" for why in _gateway(module, name)]
    return broken


def _gateway(module: str, name: str) -> list[str]:
    if name.startswith("model_host"):
        return [] if name in {"model_host", "model_host.protocol"} else [name]
    if layer(name) < layer(module):
        return [f"{name}, which lies above it"]
    inside, other = flow(module), flow(name)
    if inside and other and inside != other and name not in SHARED and name != other:
        return [f"the inside of its sibling {name}"]
    return []


def test_imports_point_downwards() -> None:
    assert broken_rules(ROOT) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("model_host/x.py", "import gateway.store"),
        ("model_host/x.py", "import llama_cpp"),
        ("gateway/x.py", "from model_host import slots"),
        ("gateway/store/x.py", "from gateway.api import y"),
        ("gateway/ask/x.py", "from gateway.wiki.local import LocalWiki"),
        ("gateway/x.py", "import numpy as np"),
    ],
)
def test_the_check_can_fail(tmp_path: Path, file: str, source: str) -> None:
    for name in ("gateway/store/y.py", "gateway/api/y.py", "gateway/wiki/local.py", "model_host/slots.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for package in ("gateway", "gateway/store", "gateway/api", "gateway/wiki", "model_host"):
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(source)
    assert broken_rules(tmp_path) != []


def test_sql_lives_in_the_store_only() -> None:
    words = ("SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE ", "PRAGMA ")
    found = []
    for file in sorted((ROOT / "gateway").rglob("*.py")):
        if (ROOT / "gateway" / "store") in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(words):
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert found == []


def test_files_stay_short() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for package in ("gateway", "model_host")
        for file in (ROOT / package).rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n > 400} == {}
    assert statistics.median(lengths.values()) <= 150
