"""Folders and names: few files in a folder, folders that say what they are, no cycles, one class per name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.layering import OURS, Module, modules

ROOT = Path(__file__).resolve().parent.parent
MAX_FILES = 15
PACKAGES = sorted(OURS)


def crowded(root: Path) -> list[str]:
    """Folders with more than :data:`MAX_FILES` Python files."""
    counts: dict[Path, int] = defaultdict(int)
    for top in (*PACKAGES, "tests", "benchmarks"):
        for path in (root / top).rglob("*.py"):
            counts[path.parent.relative_to(root)] += 1
    return sorted(f"{folder}: {count} files" for folder, count in counts.items() if count > MAX_FILES)


def undescribed(root: Path) -> list[str]:
    """Folders of the packages whose `__init__` has no docstring, or none that says what they import."""
    folders = {path.parent for package in PACKAGES for path in (root / package).rglob("*.py")}
    return sorted(
        str(folder.relative_to(root))
        for folder in folders
        if not (folder / "__init__.py").exists() or "mport" not in _docstring(folder / "__init__.py")
    )


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def entangled(found: list[Module]) -> list[str]:
    """Pairs of folders that import each other, directly or over others. A folder and its parent may."""
    folders = {module.name: module.path.parent for module in found}
    graph: dict[Path, set[Path]] = defaultdict(set)
    for module in found:
        ours = folders[module.name]
        for each in module.imports:
            theirs = folders.get(each.module) or folders.get(each.module.rpartition(".")[0])
            if theirs is not None and theirs not in (ours, *ours.parents) and ours not in theirs.parents:
                graph[ours].add(theirs)
    pairs = []
    for start in graph:
        reached: set[Path] = set()
        waiting = list(graph[start])
        while waiting:
            folder = waiting.pop()
            if folder not in reached:
                reached.add(folder)
                waiting += graph.get(folder, ())
        if start in reached:
            pairs.append(str(start))
    return sorted(pairs)


def repeated(found: list[Module]) -> list[str]:
    """Public class names that a package has twice."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in found:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    return sorted(f"{name}: {', '.join(names)}" for name, names in places.items() if len(names) > 1)


def test_no_folder_is_crowded() -> None:
    assert crowded(ROOT) == []


def test_every_folder_says_what_it_is_and_imports() -> None:
    assert undescribed(ROOT) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folders_import_each_other(package: str) -> None:
    assert entangled(modules(ROOT, package)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_means_one_thing(package: str) -> None:
    assert repeated(modules(ROOT, package)) == []


def test_broken_rules_are_found(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / "gateway" / name
        folder.mkdir(parents=True)
        other = "b" if name == "a" else "a"
        (folder / "__init__.py").write_text("")
        (folder / "things.py").write_text(
            f"from gateway.{other}.things import Thing as Other\n\nclass Thing: ...\n"
        )
    for number in range(MAX_FILES):
        (tmp_path / "gateway" / "b" / f"m{number}.py").touch()
    (tmp_path / "gateway" / "a" / "__init__.py").write_text('"""Said, but not what it takes."""')
    (tmp_path / "gateway" / "__init__.py").write_text('"""Said. Imports nothing."""')
    found = modules(tmp_path, "gateway")
    assert crowded(tmp_path) == [f"gateway/b: {MAX_FILES + 2} files"]
    assert undescribed(tmp_path) == ["gateway/a", "gateway/b"]
    assert entangled(found) == [str(tmp_path / "gateway" / "a"), str(tmp_path / "gateway" / "b")]
    assert repeated(found) == ["Thing: gateway.a.things, gateway.b.things"]
