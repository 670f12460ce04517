"""`hearth eval` as people run it: a model of its own, the running server, two runs compared, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.gateway.cli.conftest import COMMAND, run_command
from tests.gateway.evaluation.test_dialogues import SMALL
from tests.model_host.engine.test_merge import random_lora
from tests.waiting import PATIENCE, eventually


def test_eval_scores_resumes_and_compares(served: dict[str, str], tiny_model: Path, tmp_path: Path) -> None:
    def evaluate(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(served, tmp_path, "eval", *arguments)

    out, short = str(tmp_path / "run.json"), ["--model", str(tiny_model), "--category", "comparison"]
    first = evaluate(*short, "--limit", "2", "--out", out)
    assert first.returncode == 0, first.stderr
    assert "hit@3 own words" in first.stdout and "hit@3 model terms" in first.stdout
    begun = json.loads(Path(out).read_text())["rows"]
    whole = evaluate(*short, "--limit", "4", "--out", out, "--json")  # half of them are known
    told = json.loads(whole.stdout)
    rows = told["run"]["rows"]
    assert told["summary"]["questions"] == len(rows) == 4 and len(begun) == 2
    assert [row for row in rows if row in begun] == begun
    assert rows[0]["tokens"]["answer"]["prompt"] > 0
    assert "completion tokens" in first.stdout and "citation precision" in first.stdout
    assert told["intervals"]["fact_recall"][0] <= told["summary"]["fact_recall"]
    assert told["categories"]["comparison"]["questions"] == 4
    compared = evaluate("--compare", out, out)
    assert "0 better, 0 worse of 4" in compared.stdout
    assert "median seconds, answer" in compared.stdout and "prompt tokens, total" in compared.stdout
    against = evaluate(*short, "--limit", "4", "--out", out, "--against", out)  # nothing is asked anew
    assert "0 better, 0 worse of 4" in against.stdout and "fact recall" in against.stdout
    checked = evaluate("--check", "--category", "comparison")
    assert checked.returncode == 0 and "every fact is on a page" in checked.stdout
    own = tmp_path / "own.toml"
    own.write_text(
        '[[question]]\nid = "a"\ncategory = "x"\ntext = "Who?"\npages = ["Befunge"]\nfacts = [["Nobody at all"]]\n'
    )
    wrong = evaluate("--check", "--set", str(own))
    assert wrong.returncode == 78 and "a: `Nobody at all` is on none of its pages" in wrong.stdout
    assert evaluate("--category", "nonsense").returncode == 78
    assert evaluate("--set", str(tmp_path / "none.toml")).returncode == 78
    other = evaluate("--model", "hearth-demo", "--category", "comparison", "--limit", "1", "--out", out)
    assert other.returncode == 78 and "differs in: model, weights;" in other.stderr
    assert evaluate("--compare", out, out, "--limit", "3").returncode == 2


def test_eval_asks_with_an_adapter(served: dict[str, str], tiny_model: Path, tmp_path: Path) -> None:
    random_lora.write(tiny_model, tmp_path / "owl.gguf", seed=3)
    own = served | {"HEARTH_MODEL__ADAPTERS": str(tmp_path / "owl.gguf")}
    short = ("eval", "--model", str(tiny_model), "--category", "comparison", "--limit", "1", "--json")
    done = run_command(own, tmp_path, *short, "--adapter", "owl")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run"]
    assert run["model"].endswith(":owl")
    wrong = run_command(own, tmp_path, *short, "--adapter", "crow")
    assert wrong.returncode == 78 and "crow is no adapter of model.adapters, which has owl" in wrong.stderr


def test_another_search_is_another_run(served: dict[str, str], tmp_path: Path) -> None:
    retrieval = ("eval", "--terms", "question", "--category", "terse", "--out", str(tmp_path / "run.json"))
    for search, status in (("both", 0), ("both", 0), ("text", 78)):
        done = run_command(served | {"HEARTH_WIKI__SEARCH": search}, tmp_path, *retrieval)
        assert done.returncode == status, done.stderr
    assert "differs in: settings" in done.stderr


def test_eval_asks_the_running_server(served: dict[str, str], tmp_path: Path) -> None:
    def evaluate(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(served, tmp_path, "eval", "--category", "comparison", *arguments)

    done = evaluate("--server", "--limit", "2", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["run"]["server"].startswith("http://127.0.0.1:")
    assert told["summary"]["errors"] == 0 and told["summary"]["hit_at_3_own_words"] == 1.0
    # All generations of a question, which the log has, and not the last one alone.
    tokens = told["run"]["rows"][0]["tokens"]
    assert (
        tokens["answer"]["prompt"] == _logged_answer_tokens(served, tmp_path)
        and tokens["terms"]["prompt"] > 0
    )
    assert evaluate("--server", "--model", "hearth-demo").returncode == 2
    assert evaluate("--server", "--adapter", "owl").returncode == 2
    gone = evaluate("--url", "http://127.0.0.1:9", "--limit", "1")
    assert gone.returncode == 75 and "no server answers" in gone.stderr


def _logged_answer_tokens(served: dict[str, str], tmp_path: Path) -> int:
    """Prompt tokens of the answer of the last but one question in the log."""
    found = json.loads(run_command(served, tmp_path, "log", "--kind", "ask", "--json").stdout)["records"]
    shown = run_command(served, tmp_path, "log", found[1]["id"], "--json").stdout
    return int(json.loads(shown)["generations"][-1]["prompt_tokens"])


def test_an_interrupted_eval_keeps_what_it_has(
    served: dict[str, str], tiny_model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.json"
    line = [*COMMAND, "eval", "--model", str(tiny_model), "--out", str(out)]
    with subprocess.Popen(
        line, env=served, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        eventually(lambda: out.exists() or process.poll() is not None, "no question was scored")
        process.send_signal(signal.SIGINT)
        shown, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told
    assert f"resume {out}" in told and "hit@3 own words" in shown
    kept = json.loads(out.read_text())["rows"]
    assert 0 < len(kept) < 250
    assert f"stopped after {len(kept)} of" in told


def test_a_dialogue_is_replayed_from_the_command_line(
    served: dict[str, str], tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    done = run_command(
        served, tmp_path, "eval", "--memory", "--set", str(path), "--model", str(tiny_model), "--category",
        "window", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    kept = told["run"]["rows"][0]["kept"]
    assert (kept["messages"], kept["planted"], kept["in_prompt"], kept["first_five"]) == (5, 1, 1, 1)
    assert kept["stale"] == [] and kept["leaked"] == [] and kept["calls"] == {"chat": 1}
    assert told["summary"]["planted_in_prompt"] == 1.0 and told["summary"]["secrets_at_rest"] == 0.0
