"""Output and exit statuses of commands."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gateway.ask.stages import stage_text
from gateway.base.errors import ConfigurationError, DeadlineError, HearthError, OverloadedError
from gateway.cli.common.surroundings import exit_status
from gateway.cli.common.text import size_text, table
from gateway.cli.main import COMMANDS, cli, run
from tests.gateway.cli.conftest import ROOT, Run


def test_everything_that_is_printed_is_cleaned() -> None:
    """One place prints."""
    found = []
    for path in sorted((ROOT / "gateway/cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and re.match(
                r"(click\.s?echo|print|sys\.std(out|err)\.(buffer\.)?write|error\.show)$",
                ast.unparse(node.func),
            ):
                found.append((path.name, ast.unparse(node)[:60]))
    assert {name for name, _ in found} == {"text.py", "main.py"}, found
    assert [call for name, call in found if name == "main.py"] == ["error.show(shown)"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (333_590_944, "333.6 MB"), (14_200_000_000, "14.2 GB")],
)
def test_sizes(size: int, shown: str) -> None:
    assert size_text(size) == shown


def test_a_table_is_aligned_and_has_no_blanks_at_the_end() -> None:
    assert table([["A", "LONG"], ["bbb", ""]]) == "A    LONG\nbbb"


@pytest.mark.parametrize(
    ("stage", "detail", "shown"),
    [
        ("queued", {}, "asking"),
        ("queued", {"waiting": 3}, "waiting: 3 before this one"),
        ("loading", {"fraction": 0.5}, "loading the model: 50%"),
        ("terms", {"terms": ["a", "b"]}, "search terms: a, b"),
        ("search", {"term": "a", "pages": []}, "searching `a`: nothing found"),
        ("compact", {"title": "P", "words": 40}, "summarizing P in 40 words"),
        ("answer", {"pages": ["P", "Q"], "prompt_tokens": 9}, "answering from P, Q"),
        ("answer", {"pages": ["P"], "seconds": 14.3}, "answering from P, about 14 s"),
        ("answer", {"pages": ["P"], "note": "not asked"}, "answering from P: not asked"),
        (
            "reading",
            {"step": "answer", "done": 600, "total": 1200, "seconds_left": 4.6},
            "[##########----------] 600 of 1,200 tokens read, about 5 s left",
        ),
        (
            "reading",
            {"done": 1, "total": 3, "seconds_left": None},
            "[######--------------] 1 of 3 tokens read",
        ),
        ("answer", {"note": "no page to answer from"}, "no page to answer from"),
        ("fetch", {"title": "a\n\tb"}, "reading a b"),
        ("later", {"x": 1}, "later x=1"),
        ("queued", {"position": 2, "wait_seconds": 11.6}, "waiting: place 2, about 12 s"),
        ("queued", {"position": 1, "wait_seconds": None}, "waiting: place 1"),
    ],
)
def test_each_stage_is_one_plain_line(stage: str, detail: dict[str, object], shown: str) -> None:
    assert stage_text(stage, detail) == shown


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigurationError("x"), 78),
        (OverloadedError("x"), 75),
        (DeadlineError("x"), 75),
        (HearthError("x"), 1),
    ],
)
def test_the_exit_status_tells_the_kind_of_error(error: HearthError, status: int) -> None:
    assert exit_status(error) == status


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_its_line_in_the_overview(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert COMMANDS[name][1] in CliRunner().invoke(cli, ["--help"]).output


@pytest.mark.parametrize("width", ["40", "80"])
@pytest.mark.parametrize("name", ["context", "tasks", "memory", "store", "assistants"])
def test_help_cuts_no_sentence(name: str, width: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"], env={"COLUMNS": width})
    assert "..." not in result.output.split("Commands:")[1]


def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nonsense"]) == 2
    assert run(["ask", "--nonsense"]) == 2
    assert run(["key", "create"]) == 2
    assert "No such command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"), [("strat", "start"), ("task", "tasks"), ("serve", "start"), ("ps", "status")]
)
def test_a_command_that_does_not_exist_names_the_one_that_is_meant(
    capsys: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    assert run([typed]) == 2
    said = capsys.readouterr().err
    assert f"No such command '{typed}'." in said and f"'{meant}'" in said


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hearth 0.")


def test_help_imports_nothing_heavy() -> None:
    heavy = "('httpx2', 'msgspec', 'apsw', 'starlette')"
    code = f"import sys, gateway.cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_reader_that_leaves_is_no_traceback(command: list[str], environment: dict[str, str]) -> None:
    pipeline = f"{shlex.join(command)} config show --origin | head -1"
    done = subprocess.run(
        ["bash", "-c", pipeline], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("data_dir")
    assert done.stderr == ""


def test_configuration_errors_end_with_78(hearth: Run) -> None:
    done = hearth("status", HEARTH_SERVER__PORTS="1")
    assert done.returncode == 78
    assert done.stderr == (
        "hearth: unknown setting `HEARTH_SERVER__PORTS` (environment); did you mean `HEARTH_SERVER__PORT`?\n"
    )


def test_tables_wrap_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["NAME", "WHY"], ["bge-reranker", "scores passages for a question, in a hundred languages"]]
    for columns in (100, 80, 40):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = table(rows, prose=True).split("\n")
        assert max(map(len, lines)) <= columns
        assert " ".join(" ".join(lines[1:]).split()) == " ".join(rows[1])
        assert len(lines) == (2 if columns > 70 else 4)
    assert table(rows) == table(rows, prose=False) and len(table(rows).split("\n")) == 2


def test_models_and_doctor_say_the_same_memory(hearth: Run) -> None:
    listed = hearth("models", COLUMNS="300").stdout
    checked = hearth("doctor", COLUMNS="300").stdout
    (needed,) = re.findall(r"hearth-demo +\S+ \S+ +(\S+ \S+)", listed)
    assert re.search(rf"hearth-demo .*needs {re.escape(needed)} of memory", checked)
