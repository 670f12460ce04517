"""kill -9 of the whole gateway at random while 20 tasks append to a file through an outside tool.

    python -m benchmarks.runs.gateway_kills [--kills 500] [--life 4] [--store postgresql://…]

Doubtful steps are answered truthfully. At the end each line must be there once, and nothing left to do. ``--life`` is
the longest life of a gateway in seconds: beside other programs a step takes longer than the second of an idle machine,
and on PostgreSQL (``--store``) the next gateway takes up a job 15 s after the last sign of life of the one before.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, command_line
from tests.end_to_end.server import Server

TASKS, STEPS = 20, 5
_TOOL = ROOT / "tests" / "gateway" / "runs" / "outside_server.py"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--life", type=float, default=4.0, metavar="SECONDS")
    parser.add_argument("--store", default="", metavar="URL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines, config = folder / "lines", folder / "hearth.toml"
        lines.touch()
        command = ", ".join(f'"{each}"' for each in (sys.executable, _TOOL, "append", lines))
        config.write_text(
            f'[[tasks.servers]]\nname = "file"\ntools = {{ say = ["effect"] }}\ncommand = [{command}]\n'
            f'sandbox = false\n[store]\nurl = "{options.store}"\n'
        )
        kills, batch, asked, tasks = 0, 0, Counter[str](), list[str]()
        while True:
            server = Server(folder / "data", "hearth-demo", "--config", str(config))
            if not tasks:
                if kills >= options.kills:
                    break
                tasks = make_tasks(server, batch)
                batch += 1
            end = time.monotonic() + random.uniform(0, options.life)
            while tasks and (kills >= options.kills or time.monotonic() < end):
                asked += answer(server, lines)
                tasks = [each for each in tasks if view(server, each)["state"] != "done"]
                time.sleep(0.02)
            server.kill()
            server.client.close()
            kills += 1
            print(f"{kills} kills, {batch} batches, {len(lines.read_text().splitlines())} lines", flush=True)
        server.stop()
        found = Counter(lines.read_text().splitlines())
    wanted = {
        f"{made} {task} {step}" for made in range(batch) for task in range(TASKS) for step in range(STEPS)
    }
    lost, twice = wanted - found.keys(), [line for line, count in found.items() if count > 1]
    print(
        f"{kills} kills: {len(wanted)} lines wanted, {len(lost)} lost, {len(twice)} twice; doubtful: {dict(asked)}"
    )
    raise SystemExit(bool(lost or twice))


def make_tasks(server: Server, batch: int) -> list[str]:
    made = []
    for number in range(TASKS):
        new = {"title": f"batch {batch}, task {number}", "day": f"{2001 + batch}"}  # a day holds 99 tasks
        task = server.client.post("/v1/tasks", json=new).raise_for_status().json()["id"]
        steps = [f"file.say: {batch} {number} {step}" for step in range(STEPS)]
        body = {"steps": steps, "archetype": "model"}
        reply = server.client.post(f"/v1/tasks/{task}/run", json=body)
        if reply.is_error:
            raise SystemExit(reply.text)
        made.append(task)
    return made


def view(server: Server, task: str) -> dict[str, Any]:
    run: dict[str, Any] = server.client.get(f"/v1/tasks/{task}/run").raise_for_status().json()
    return run


def answer(server: Server, lines: Path) -> Counter[str]:
    """Answer each open question about a doubtful step with what the file says."""
    given = Counter[str]()
    runs = server.client.get("/v1/runs?limit=100").raise_for_status().json()["data"]
    for run in runs:
        if (question := run["breakpoint"]) is None:
            continue
        if question["kind"] != "happened":
            raise SystemExit(f"unexpected: {question}")
        [step] = [each for each in run["steps"] if each["state"] == "waiting"]
        happened = step["title"].partition(": ")[2] in lines.read_text().splitlines()
        given["yes" if happened else "no"] += 1
        body = {"answer": "yes" if happened else "no", "breakpoint": question["id"]}
        server.client.post(f"/v1/tasks/{run['task']}/answer", json=body).raise_for_status()
    return given


if __name__ == "__main__":
    main()
