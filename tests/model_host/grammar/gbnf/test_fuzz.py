"""Thousands of hostile grammars in a separate process: none crashes it, exhausts its memory, or takes long."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.model_host.driver import ROOT

# CPU seconds for reading one grammar and following it for 60 tokens; an idle core needs a tenth of it.
BOUND = 10.0


def fuzz(first: int, last: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.model_host.grammar.gbnf.fuzz", str(first), str(last)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, float] = json.loads(done.stdout)
    assert result["worst_seconds"] < BOUND, result
    return result


def test_hostile_grammars() -> None:
    result = fuzz(0, 300)
    assert min(result["refused"], result["followed"], result["stopped"]) > 5, result


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_thousand_hostile_grammars() -> None:
    result = fuzz(300, 1300)
    assert min(result["refused"], result["followed"], result["stopped"]) > 20, result
