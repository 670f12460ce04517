"""Tasks with checkable ends, and a chat's first token beside running tasks.

    python -m benchmarks.runs.tasks MODEL [--set eval/tasks.toml]
    python -m benchmarks.runs.tasks MODEL --beside 10

A task is "done" if it reached its end. A checklist that is shown for confirmation is answered with yes if it has only
tools that the task asks for; the task is then "yes" if it reached its end. Otherwise it is "asked". It is "false" if it
used a tool or made a fact or a task that was not asked for, and "wrong" in every other case. ``--beside N`` compares
the first token of a chat alone with that beside N runs, whose steps ask the model in turns, each with a new
conversation.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.codebases.common import indexed
from benchmarks.common import ROOT, command_line, new_server
from gateway.cli.common.files import opened_database

FILES = {
    "till.py": "def total(prices):\n    return sum(prices)\n\n\ndef checkout(prices, discount):\n"
    "    return total(prices) * (1 - discount)\n",
    "docs/opening.md": "# Opening\n\nThe shop opens at seven in the morning and closes at noon.\n",
    "stock.py": "def order_more(item):\n    print(item)\n\n\ndef restock(item):\n    order_more(item)\n\n\n"
    "def sell(item):\n    restock(item)\n",
    "docs/suppliers.md": "# Suppliers\n\nHalme delivers the bread each morning. The vegetables come on Tuesday.\n",
}
_ENDS = ("done", "yes", "asked", "wrong", "false")
_ENDED = ("done", "cancelled", "waiting")
_TOOL = re.compile(r"[a-z_]+: ")


def run_task(client: httpx2.Client, task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """How the task ended (one of ``_ENDS``), and its run."""
    before = [_texts(client, name) for name in ("facts", "tasks")]
    new = {"title": task["title"], "archetype": "user" if "steps" in task else "model"}
    made = client.post("/v1/tasks", json=new).json()["id"]
    body = {"steps": task["steps"], "archetype": "model"} if "steps" in task else {}
    client.post(f"/v1/tasks/{made}/run", json=body).raise_for_status()
    run, kinds, replies = _rest(client, made), [], list(task.get("replies", ()))
    good_plan = True
    while run["state"] == "waiting" and good_plan:
        kinds.append(run["breakpoint"]["kind"])
        if asks := kinds[-1] == "confirm":
            good_plan = _fits(run, task)
        elif kinds[-1] == "checklist" or not replies:
            break
        if good_plan:
            value = "yes" if asks else replies.pop(0)
            client.post(f"/v1/tasks/{made}/answer", json={"answer": value}).raise_for_status()
            run = _rest(client, made)
    facts, titles = (
        [text for text in _texts(client, name) if text not in old and text != task["title"]]
        for name, old in zip(("facts", "tasks"), before, strict=True)
    )
    tried, wanted = [step for step in run["steps"] if step["attempts"]], _wanted(task)
    if wanted is not None:
        made_up = (facts and "fact" not in task) or (titles and "task" not in task)
        if made_up or not set(_tools(tried)) <= {*wanted, "think"}:
            return "false", run
    if task.get("asks") not in (None, *kinds):
        return "wrong", run
    results = "\n".join(step["result"] or "" for step in tried if step["outcome"] != "failed")
    found = {"answer": results, "fact": "\n".join(facts), "task": "\n".join(titles)}
    good = all(re.search(task[name], text) for name, text in found.items() if name in task)
    if kinds[-1:] == ["checklist"] and task.get("asks") != "checklist":
        return "asked", run
    if "confirm" in kinds:
        return "yes" if good and good_plan else "asked", run
    return "done" if good else "wrong", run


def _texts(client: httpx2.Client, name: str) -> list[str]:
    """The texts of all facts, or the titles of all tasks that are no items."""
    found = client.get(f"/v1/{name}?limit=200").json()["data"]
    return [each.get("text") or each["title"] for each in found if each.get("level") != "checklist"]


def _tools(steps: list[dict[str, Any]]) -> list[str]:
    return [step["title"].partition(": ")[0] if _TOOL.match(step["title"]) else "think" for step in steps]


def _wanted(task: dict[str, Any]) -> list[str] | None:
    """The tools that a task asks for; None if its end alone counts."""
    ends = {"answer", "fact", "task", "asks", "steps"} & task.keys()
    return task.get("tools", None if ends else [])


def _fits(run: dict[str, Any], task: dict[str, Any]) -> bool:
    """Whether the checklist that is shown has only tools that the task asks for."""
    wanted = _wanted(task)
    return wanted is None or set(_tools(run["steps"])) <= {*wanted, "think"}


def _rest(client: httpx2.Client, task: str) -> dict[str, Any]:
    while True:
        run: dict[str, Any] = client.get(f"/v1/tasks/{task}/run").json()
        if run["state"] in _ENDED:
            return run
        time.sleep(0.05)


def score(client: httpx2.Client, tasks: list[dict[str, Any]]) -> None:
    rows: dict[str, list[tuple[str, dict[str, Any]]]] = {"words": [], "steps": [], "model": []}
    for task in tasks:
        ended, run = run_task(client, task)
        how = "steps" if "steps" in task else "words" if run["planned"] == "words" else "model"
        rows[how].append((ended, run))
        why = f": {run['breakpoint']['question']}" if run["breakpoint"] and ended != "done" else ""
        print(f"{ended:6} {how:6} {len(run['steps']):2} steps {run['tokens']:6} tokens  {task['title']}{why}")
    for how, ends in rows.items():
        if ends:
            counts = ", ".join(f"{sum(end == ended for end, _ in ends)} {ended}" for ended in _ENDS)
            steps, tokens = (
                statistics.mean(value)
                for value in zip(*((len(run["steps"]), run["tokens"]) for _, run in ends), strict=True)
            )
            print(f"{how}: {len(ends)} tasks: {counts}; {steps:.1f} steps, {tokens:.0f} tokens each")


def beside(client: httpx2.Client, count: int, rounds: int = 16) -> None:
    """Seconds to a chat's first token, alone and beside ``count`` runs, in turns."""
    alone, busy = [], []
    made = [client.post("/v1/tasks", json={"title": f"run {n}"}).json()["id"] for n in range(count)]
    first_token(client)
    for number in range(rounds):
        alone.append(first_token(client))
        for task in made:
            steps = [
                f"think: What is there to say about the number {number} and {step}?" for step in range(12)
            ]
            client.post(
                f"/v1/tasks/{task}/run", json={"steps": steps, "archetype": "model"}
            ).raise_for_status()
        while sum(client.get(f"/v1/tasks/{task}/run").json()["tokens"] > 0 for task in made) < 1:
            time.sleep(0.05)
        busy.append(first_token(client))
        for task in made:
            client.post(f"/v1/tasks/{task}/cancel")
    ratio = statistics.median(busy) / statistics.median(alone)
    print(
        f"first token alone {statistics.median(alone) * 1000:.0f} ms, beside {count} runs "
        f"{statistics.median(busy) * 1000:.0f} ms: {ratio:.2f} times; medians of {rounds}"
    )


def first_token(client: httpx2.Client) -> float:
    talk = client.post("/v1/conversations", json={}).json()["id"]
    body = {"text": "Tell me about the sea.", "stream": True, "max_tokens": 8}
    begun = time.perf_counter()
    with client.stream("POST", f"/v1/conversations/{talk}/messages", json=body) as reply:
        seconds = 0.0
        for line in reply.iter_lines():
            if line == "event: delta" and not seconds:
                seconds = time.perf_counter() - begun
    return seconds


def register(database_path: Path, folder: Path) -> None:
    """Index the project ``shop``."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with opened_database(database_path) as database:
        indexed(database, folder, "shop")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("model", help="a name, or the path of a GGUF file")
    parser.add_argument("--set", type=Path, default=ROOT / "eval" / "tasks.toml")
    parser.add_argument("--beside", type=int, metavar="RUNS")
    arguments = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(f"{Path(arguments.model).name}, commit {commit.stdout.strip()}")
    with tempfile.TemporaryDirectory() as folder, new_server(arguments.model) as server:
        register(server.data_dir / "hearth.db", Path(folder) / "shop")
        with httpx2.Client(base_url=server.url, timeout=600) as client:
            if arguments.beside:
                beside(client, arguments.beside)
            else:
                score(client, tomllib.loads(arguments.set.read_text())["tasks"])


if __name__ == "__main__":
    sys.exit(main())
