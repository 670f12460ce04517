"""What is indexed and what is left out: names, `.gitignore`, content, globs, and what is broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.base.errors import InvalidRequestError
from gateway.code.source import lines_of
from gateway.code.walk import unsuitable, walk
from tests.writing import write_files


def found(root: Path, *excludes: str, docs: bool = False) -> list[str]:
    return [each.path for each in walk(root, excludes, docs=docs).files]


def put(root: Path, *paths: str, text: str = "x = 1\n") -> None:
    write_files(root, dict.fromkeys(paths, text))


def test_folders_and_suffixes_of_builds_and_binaries_are_left_out(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.py",
        "node_modules/m/a.js",
        ".git/hook.py",
        "dist/a.js",
        "build/a.py",
        "out/a.py",
        "coverage/a.js",
    )
    put(tmp_path, "b.pdf", "c.png", "d.zip", "e.exe", "f.min.js", "docs/read.md", "src/out.py")
    assert found(tmp_path) == ["a.py", "docs/read.md", "src/out.py"]
    assert found(tmp_path, docs=True) == ["docs/read.md"]


def test_nested_gitignores_hold_below_their_folders_and_inner_ones_win(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.py",
        "gen.py",
        "sub/gen.py",
        "sub/keep.py",
        "sub/deep/secret.py",
        "secret.py",
        "logs/x.py",
    )
    (tmp_path / ".gitignore").write_text("gen.py\n/logs/\n[z-a\n")
    (tmp_path / "sub" / ".gitignore").write_text("!gen.py\nsecret.py\n")
    assert found(tmp_path) == ["a.py", "secret.py", "sub/gen.py", "sub/keep.py"]


def test_globs_of_the_registry_exclude(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "src/legacy/old.py", "src/legacy/deep/older.py", "src/new.py")
    assert found(tmp_path, "src/legacy/**") == ["a.py", "src/new.py"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"x = 1\n", None),
        (b"x" * 1023 + b"\0", "binary"),
        (b"x" * 1024 + b"\0", None),
        (b"y" * 3001, "minified"),
        (b"y" * 3000 + b"\n", None),
        ("é".encode() * 3000, None),
        (b"z\n" * 500_001, "over 1 MB"),
        (b"\xff\xfe no text \x80\n", None),
    ],
)
def test_content_that_is_not_indexed(source: bytes, reason: str | None) -> None:
    assert unsuitable(source) == reason


def test_loops_of_links_and_unreadable_folders_do_no_harm(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "sub/b.py")
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    (tmp_path / "sub" / "link.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    assert found(tmp_path) == ["a.py", "sub/b.py"]


def test_a_name_that_is_not_text_is_counted(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("def f(): ...\n")
    found = walk(tmp_path, [])
    assert (found.files, found.left_out) == ([], {"with an unprintable name": 1})


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    with pytest.raises(InvalidRequestError, match=r"a\.py is not a folder"):
        walk(tmp_path / "a.py", [])


def test_a_file_that_became_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "inside").mkdir(parents=True)
    (root / "inside" / "a.py").write_text("x = 1\n")
    (tmp_path / "private.py").write_text("y = 2\n")
    assert lines_of(root, "inside/a.py", 1, 9) == ["x = 1"]
    (root / "inside" / "a.py").unlink()
    (root / "inside" / "a.py").symlink_to(tmp_path / "private.py")
    assert lines_of(root, "inside/a.py", 1, 9) == []
    assert lines_of(root, "../private.py", 1, 9) == []
    (root / "loop").symlink_to(root / "loop")
    assert lines_of(root, "loop/a.py", 1, 9) == []
