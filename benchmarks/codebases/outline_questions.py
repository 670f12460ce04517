"""Measure the share of questions whose definitions are in an outline of 1,000 tokens.

50 questions about five packages of PyPI, written before the first measurement, each with its definitions. The outline
is made for the question, then for the project alone. ``--aider`` is the Python of an environment with `aider-chat`:
its map is made for the same budget, with the identifiers that the question names, as aider does.

    python benchmarks/codebases/outline_questions.py [--aider PYTHON] [--tokens 1000] [--missing]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.codebases.common import fetched, indexed, new_database
from gateway.code import queries
from gateway.code.outline import outline

_AIDER = """
import json, re, sys
from pathlib import Path
from aider.io import InputOutput
from aider.repomap import RepoMap
class Model:
    def token_count(self, text):
        return len(text) / 3
root, tokens = sys.argv[1], int(sys.argv[2])
files = sorted(str(each) for each in Path(root).rglob("*.py"))
made = RepoMap(map_tokens=tokens, root=root, main_model=Model(), io=InputOutput(yes=True), map_mul_no_files=1)
maps = []
for question in json.loads(sys.stdin.read()):
    words = set(re.split(r"\\W+", question))
    maps.append(made.get_repo_map([], files, mentioned_fnames=set(), mentioned_idents=words) or "")
print(json.dumps(maps))
"""


def holds(text: str, place: queries.Place) -> bool:
    """Whether an outline shows a definition: below its file and, for a method, next below its class."""
    owner, name = place.name.split(".")[-2:]
    wanted = re.compile(rf"\b{'class' if place.kind == 'class' else 'def'} {name}\b")
    file = within = ""
    for line in text.splitlines():
        if not line[:1].isspace() and line.endswith(":") and " " not in line:
            file, within = line[:-1], ""
        if found := re.match(r"[│\s\d:]*class (\w+)", line):
            within = found[1]
        if file == place.path and wanted.search(line) and (place.kind != "method" or within == owner):
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--aider", type=Path, help="a Python that has aider-chat")
    parser.add_argument(
        "--missing", action="store_true", help="list the questions whose definitions are not shown"
    )
    options = parser.parse_args()
    sets = json.loads(Path(__file__).with_suffix(".json").read_text())
    kinds = ["for the question", "for the project", *(["aider"] if options.aider else [])]
    counts = dict.fromkeys(kinds, 0)
    print(f"| package | questions | {' | '.join(kinds)} |\n|---|--:|{'--:|' * len(kinds)}")
    with tempfile.TemporaryDirectory() as scratch, new_database() as database:
        for package, questions in sets.items():
            root = fetched(package, Path(scratch), source=False)
            project = indexed(database, root)

            def made(about: str, project: str = project.id) -> str:
                return database.read_sync(lambda c: outline(c, project, options.tokens, about)).text

            maps = [[made(question), made("")] for question, _ in questions]
            if options.aider:
                command = [str(options.aider), "-c", _AIDER, str(root), str(options.tokens)]
                asked = json.dumps([question for question, _ in questions])
                done = subprocess.run(command, input=asked, check=True, capture_output=True, text=True)
                for ours, theirs in zip(maps, json.loads(done.stdout.splitlines()[-1]), strict=True):
                    ours.append(theirs)
            row = dict.fromkeys(kinds, 0)
            for (question, names), texts in zip(questions, maps, strict=True):
                places = [
                    database.read_sync(partial(queries.find, project=project.id, name=n)) for n in names
                ]
                for kind, text in zip(kinds, texts, strict=True):
                    found = all(any(holds(text, place) for place in each) for each in places)
                    row[kind] += found
                    if options.missing and not found:
                        print(f"{kind}: {package}: {question} {names}")
            counts = {kind: counts[kind] + row[kind] for kind in kinds}
            print(f"| {package} | {len(questions)} | {' | '.join(str(row[kind]) for kind in kinds)} |")
    every = sum(map(len, sets.values()))
    print(f"| all | {every} | {' | '.join(f'{counts[kind] / every:.2f}' for kind in kinds)} |")


if __name__ == "__main__":
    main()
