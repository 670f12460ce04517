"""Commands that work on this machine's files alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec
import pytest

from gateway.base.cores import usable_cores
from gateway.base.resources import bundled
from gateway.cli.common.files import opened_database
from gateway.cli.doctor.command import MachineReport, fit
from gateway.cli.doctor.connections import check_question
from gateway.config.settings import Settings
from gateway.inference.process.snapshots import SnapshotSizes
from gateway.inference.process.thread_plans import ThreadPlan, ThreadPlans
from gateway.inference.speed import Learned, Rate
from gateway.models.catalog import Catalog
from gateway.store.request_log import GenerationRecord, RequestRecord, add_record
from tests.gateway.cli.conftest import Run

GB = 10**9


def machine(total: int, available: int, disk: int = 100 * GB) -> MachineReport:
    return MachineReport(
        cores=8,
        cores_total=8,
        memory_total=total,
        memory_available=available,
        memory_source="this machine",
        disk_free=disk,
        snapshots=SnapshotSizes(0, 0),
        versions={},
    )


@pytest.mark.parametrize(
    ("here", "verdict", "why"),
    [
        (machine(32 * GB, 30 * GB), "yes", "30.0 GB is free"),
        (machine(32 * GB, 9 * GB), "tight", "only 9.0 GB is free now"),
        (machine(8 * GB, 7 * GB), "no", "the limit is 8.0 GB (this machine)"),
        (machine(32 * GB, 30 * GB, disk=5 * GB), "no", "needs 6.7 GB of disk space; 5.0 GB is free"),
    ],
)
def test_doctor_judges_memory_and_disk(tmp_path: Path, here: MachineReport, verdict: str, why: str) -> None:
    row = Catalog.load().get("gemma-4-12b")
    assert row is not None
    judged = fit(row, here, Settings(data_dir=tmp_path))
    assert (judged.verdict, judged.installed) == (verdict, False)
    assert why in judged.why


def test_doctor_reports_this_machine(hearth: Run) -> None:
    done = hearth("doctor", "--json")
    report = json.loads(done.stdout)
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["versions"]["llama-cpp-python"]
    assert {model["verdict"] for model in report["models"]} <= {"yes", "tight", "no"}
    assert "gemma-4-26b-a4b" in hearth("doctor").stdout


def test_doctor_shows_how_many_threads_are_best(hearth: Run, tmp_path: Path) -> None:
    assert "BATCH" not in hearth("doctor").stdout
    plan = ThreadPlan(
        model="small",
        file=("/models/small.gguf", 1, 2),
        cores=2,
        measured_at=0.0,
        plan={1: 1, 64: 2},
        speeds={1: {1: 3200.0, 2: 2750.4}, 64: {2: 11000.0}},
    )
    ThreadPlans(tmp_path / "data/threads").put(plan)
    lines = hearth("doctor").stdout.splitlines()
    assert "small  1      1 of 2   3,200 with 1, 2,750 with 2" in lines
    assert "small  64     2 of 2   11,000 with 2" in lines
    assert json.loads(hearth("doctor", "--json").stdout)["threads"] == json.loads(msgspec.json.encode([plan]))


def demo_plan(plan: dict[int, int], speeds: dict[int, dict[int, float]]) -> ThreadPlan:
    """A plan for the demo model on this machine."""
    path = bundled("models/demo/hearth-demo.gguf")
    status = path.stat()
    return ThreadPlan(
        model="hearth-demo",
        file=(str(path), status.st_mtime_ns, status.st_size),
        cores=usable_cores(),
        measured_at=0.0,
        plan=plan,
        speeds=speeds,
    )


def test_doctor_estimates_a_question(hearth: Run, tmp_path: Path) -> None:
    unknown = "the time for a question with hearth-demo is not known yet"
    assert (
        f"speed: {unknown}: it is measured when the model is first loaded with idle cores, or writes a reply\n"
        in hearth("doctor").stdout
    )
    plan = demo_plan({1: 1, 64: 2}, {1: {1: 20.0}, 64: {1: 80.0, 2: 100.0}})
    ThreadPlans(tmp_path / "data/threads").put(plan)
    assert (
        "speed: a question takes about 10 s with hearth-demo; its prompt may have up to 400 tokens "
        "(the catalog's limit for this model)\n"
    ) in hearth("doctor").stdout
    slower = msgspec.structs.replace(plan, learned=Learned(0, Rate(1000.0, 50.0), Rate(100.0, 50.0)))
    ThreadPlans(tmp_path / "data/threads").put(slower)
    shown = json.loads(hearth("doctor", "--json").stdout)["question"]
    assert shown["model"] == "hearth-demo" and shown["seconds"] > 60
    assert "the least for a cited answer: at 20 tokens/s read and 2 written" in shown["reason"]
    fixed = json.loads(hearth("doctor", "--json", HEARTH_MODEL__THREADS="1").stdout)["question"]
    assert fixed["seconds"] is None, "it was measured with another number of threads"


ALL = ["hearth-demo", "embeddinggemma", "gemma-4-e2b", "gemma-4-e4b", "gemma-4-12b", "gemma-4-26b-a4b"]


@pytest.mark.parametrize(
    ("gigabytes", "fitting", "biggest"),
    [
        (0.001, ALL, None),
        (0.1, ALL, "hearth-demo"),
        (2.5, ALL, "gemma-4-26b-a4b"),  # few of its weights are read for a token
        (2.5, ALL[:-1], "gemma-4-e2b"),
        (7.0, ALL[:-1], "gemma-4-12b"),
    ],
)
def test_doctor_names_the_biggest_model_that_answers_in_time(
    tmp_path: Path, gigabytes: float, fitting: list[str], biggest: str | None
) -> None:
    """A model that reads this many gigabytes for each token answers in 18 s."""
    pace = 20.0 * gigabytes * GB / bundled("models/demo/hearth-demo.gguf").stat().st_size
    settings = Settings(data_dir=tmp_path)
    ThreadPlans(settings.thread_plan_dir).put(demo_plan({1: 1, 64: 1}, {1: {1: pace}, 64: {1: 5 * pace}}))
    found = check_question(settings, fitting)
    assert found is not None and found.biggest == biggest
    assert found.biggest_text is not None and (biggest or "no model") in found.biggest_text
    assert (found.biggest_seconds is None) == (biggest is None) and (found.biggest_seconds or 0) <= 20


def test_a_control_group_bounds_the_cores(tmp_path: Path) -> None:
    proc, inner = tmp_path / "cgroup", tmp_path / "fs/a/b"
    inner.mkdir(parents=True)
    proc.write_text("0::/a/b\n")
    assert usable_cores(proc=proc, mount=tmp_path / "fs") >= 1
    (inner / "cpu.max").write_text("max 100000\n")
    (tmp_path / "fs/a/cpu.max").write_text("50000 100000\n")
    assert usable_cores(proc=proc, mount=tmp_path / "fs") == 1
    assert usable_cores(proc=tmp_path / "gone") >= 1


def test_models_lists_catalog_and_pulled_files(hearth: Run, tmp_path: Path) -> None:
    own = tmp_path / "data/models/owner/repo/x.gguf"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"GGUF")
    listed = {model["name"]: model for model in json.loads(hearth("models", "--json").stdout)["models"]}
    assert listed["owner/repo:x.gguf"]["installed"] is True
    assert listed["gemma-4-e2b"]["installed"] is False
    assert "* " in hearth("models").stdout
    listed = json.loads(hearth("models", "--json", HEARTH_MODEL__ADAPTERS="lora/owl.gguf").stdout)
    [adapter] = listed["adapters"]
    assert (adapter["name"], adapter["installed"]) == ("hearth-demo:owl", False)
    assert "hearth-demo:owl" in hearth("models", HEARTH_MODEL__ADAPTERS="lora/owl.gguf").stdout


def test_config_show_tells_the_origin(hearth: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[log]\nlevel = 'debug'\n")
    shown = hearth("config", "show", "--origin", "--config", str(file), HEARTH_SERVER__PORT="1").stdout
    assert f"# file {file}" in shown
    assert "# environment HEARTH_SERVER__PORT" in shown
    as_json = json.loads(hearth("config", "show", "--origin", "--json", "--data-dir", str(tmp_path)).stdout)
    assert as_json["data_dir"] == {"value": str(tmp_path), "origin": "flag --data-dir"}
    assert json.loads(hearth("config", "show", "--json").stdout)["server.port"] == 8420


def test_the_first_key_says_that_it_does_not_see_earlier_conversations(hearth: Run, tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps({"messages": [{"role": "user", "content": "Hello"}]}))
    assert hearth("import", str(chat)).returncode == 0
    assert "conversations from before the first one (1)" in hearth("key", "create", "ann").stderr
    assert "conversations" not in hearth("key", "create", "bob").stderr


def test_a_key_is_made_listed_and_revoked(hearth: Run, tmp_path: Path) -> None:
    assert "there are no keys" in hearth("key", "list").stdout
    assert not (tmp_path / "data").exists()  # looking creates nothing
    token = hearth("key", "create", "bob", "--role", "admin").stdout.strip()
    assert token.startswith("hk_")
    again = hearth("key", "create", "bob")
    assert (again.returncode, "a key named `bob` exists" in again.stderr) == (1, True)
    keys = json.loads(hearth("key", "list", "--json").stdout)["keys"]
    assert [(key["name"], key["role"]) for key in keys] == [("bob", "admin")]
    assert token not in hearth("key", "list").stdout
    assert hearth("key", "revoke", "bob").returncode == 0
    assert "revoked" in hearth("key", "list").stdout
    gone = hearth("key", "revoke", "bob")
    assert (gone.returncode, "no active key" in gone.stderr) == (1, True)


def test_the_log_of_another_machine_is_refused(hearth: Run) -> None:
    refused = hearth("log", "--url", "http://127.0.0.1:9")
    assert refused.returncode == 2 and "--url goes with --replay" in refused.stderr


def test_the_log_in_short_and_long_form(hearth: Run, tmp_path: Path) -> None:
    empty = hearth("log")
    assert (empty.returncode, "no requests are logged" in empty.stdout + empty.stderr) == (0, True)
    with opened_database(tmp_path / "data/hearth.db") as database:
        generation = GenerationRecord(
            step="answer",
            messages=[{"role": "user", "content": "PROMPT \x1b[2J"}],
            output="RAW",
            prompt_name="p",
        )
        for number in range(3):
            record = RequestRecord(
                id=f"req{number}x",
                kind="ask",
                started_at=time.time(),
                seconds=1.5,
                status=200,
                text=f"question {number} " + "long " * 40,
                answer="ANSWER",
                generations=[generation],
            )
            database.write_sync(
                lambda connection, record=record: add_record(
                    connection, record, max_records=10, max_record_bytes=10**6
                )
            )
    short = hearth("log", "--limit", "2").stdout.splitlines()
    assert ["req2x" in short[1], "req1x" in short[2], len(short)] == [True, True, 3]
    long_form = hearth("log", "req1").stdout
    assert all(text in long_form for text in ("question 1", "ANSWER", "PROMPT [2J", "RAW", "prompt p v"))
    assert json.loads(hearth("log", "req1x", "--json").stdout)["answer"] == "ANSWER"
    older = json.loads(hearth("log", "--json", "--before", "2").stdout)["records"]
    assert [record["id"] for record in older] == ["req0x"]
    missing = hearth("log", "nothere")
    assert (missing.returncode, "no request in the log" in missing.stderr) == (1, True)
    ambiguous = hearth("log", "req")
    assert "req0x, req1x, req2x" in ambiguous.stderr
