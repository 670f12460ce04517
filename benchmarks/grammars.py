"""Our grammars and schemas beside llguidance's: `pip install llguidance==1.9.1`, then `python -m benchmarks.grammars`.

The official test suite of JSON Schema and Gemma 4's vocabulary come from the source packages of jsonschema and
llama-cpp-python, which pip downloads to build/grammars. llguidance gets GBNF one character a terminal: its own
converter makes one terminal of several characters, which takes the longest match and so changes the language.
Prints Markdown tables; docs/decisions/0013-grammars.md has them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from llguidance import LLMatcher, LLTokenizer

from benchmarks.fuzz.grammar_cases import GRAMMARS, HOSTILE_GRAMMARS, HOSTILE_SCHEMAS, SCHEMA, SCHEMA_TEXT
from model_host.engine.constraint import Constraint, Search
from model_host.engine.vocabulary import Vocabulary
from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.parser import parse
from model_host.grammar.gbnf.program import Program, compile_grammar
from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Characters,
    Concatenation,
    GrammarError,
    Literal,
    Node,
    Reference,
    Repeat,
    Token,
)
from model_host.grammar.schema.converter import schema_to_grammar

FOLDER = Path("build/grammars")
SECONDS, MEMORY = 40, 3 * 1024**3  # of one hostile case
TOKENS = 300
PACKAGES = ("jsonschema==4.26.0", "llama-cpp-python==0.3.36")
SUITE = "jsonschema-4.26.0/json/tests/draft2020-12"
VOCABULARY = "llama_cpp_python-0.3.36/vendor/llama.cpp/models/ggml-vocab-gemma-4.gguf"


def fetch() -> None:
    for package, wanted in zip(PACKAGES, (SUITE, VOCABULARY), strict=True):
        if (FOLDER / wanted).exists():
            continue
        command = ["download", "-q", "--no-deps", "--no-binary", ":all:", package, "-d", str(FOLDER)]
        subprocess.run([sys.executable, "-m", "pip", *command], check=True)
        with tarfile.open(next(FOLDER.glob(f"{wanted.partition('/')[0]}.tar.gz"))) as archive:
            inside = [member for member in archive.getmembers() if member.name.startswith(wanted)]
            archive.extractall(FOLDER, inside, filter="data")


class Tokens:
    """A vocabulary as llguidance wants it; control tokens have no bytes."""

    def __init__(self, pieces: list[bytes], eos: int, vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary = vocabulary
        self.tokens = [piece or b"\xff<control>" for piece in pieces]
        self.eos_token_id, self.bos_token_id, self.special_token_ids = eos, None, []
        self.is_tokenizer_wrapper = True

    def __call__(self, text: str) -> list[int]:
        return self._vocabulary.tokenize(text, special=False) if self._vocabulary else list(text.encode())


BYTES = [bytes([byte]) for byte in range(256)]


def lark(gbnf: str) -> str:
    """GBNF with one terminal a character."""
    rules = parse(gbnf)
    names = {name: "start" if name == "root" else f"r{number}" for number, name in enumerate(rules)}

    def written(node: Node) -> str:
        match node:
            case Literal():
                return " ".join(rf"/\x{{{ord(character):x}}}/" for character in node.text) or '""'
            case Characters():
                ranges = "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in node.ranges)
                return f"/[{ranges}]/"
            case Token():
                return f"<[{'^' * node.negated}{node.number}]>"
            case Reference():
                return names[node.rule]
            case Concatenation():
                return " ".join(map(written, node.items)) or '""'
            case Alternatives():
                return f"({' | '.join(map(written, node.items))})"
            case Repeat():
                return f"({written(node.item)}){{{node.least},{'' if node.most is None else node.most}}}"

    return "%llguidance {}\n" + "".join(f"{names[name]}: {written(node)}\n" for name, node in rules.items())


def their_matcher(tokenizer: LLTokenizer, *, gbnf: str | None = None, schema: Any = None) -> LLMatcher:
    """Raises GrammarError."""
    if gbnf is not None:
        grammar = LLMatcher.grammar_from_lark(lark(gbnf))
    elif isinstance(schema, bool):
        grammar = json.dumps({"grammars": [{"json_schema": schema}]})
    else:
        options = {"whitespace_pattern": " ?"}
        try:
            grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
        except (ValueError, RecursionError) as error:
            raise GrammarError(str(error)) from None
    matcher = LLMatcher(tokenizer, grammar, log_level=0)
    if matcher.is_error():
        raise GrammarError(matcher.get_error())
    return matcher


Taker = Callable[[str], bool]


def ours(schema: Any) -> Taker:
    """Whether a text satisfies ``schema``, byte by byte."""
    program = schema_to_grammar(schema)

    def takes(text: str) -> bool:
        matcher = Matcher(program)
        for byte in text.encode():
            if not matcher.allows(-1, BYTES[byte]):
                return False
            matcher.accept(-1, BYTES[byte])
        return matcher.may_end

    return takes


@cache
def _byte_tokenizer() -> LLTokenizer:
    return LLTokenizer(Tokens([*BYTES, b""], 256))


def theirs(schema: Any) -> Taker:
    """Whether a text satisfies ``schema``, byte by byte."""
    first = their_matcher(_byte_tokenizer(), schema=schema)

    def takes(text: str) -> bool:
        matcher, data = first.deep_copy(), list(text.encode())
        return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()

    return takes


def writings(value: Any) -> Iterator[str]:
    """Ways to write a value: compact or spaced, escaped or not, and with some orders of its properties."""
    for arranged in itertools.islice(_arranged(value), 200):
        for separators, escaped in itertools.product(((",", ":"), (", ", ": ")), (False, True)):
            text = json.dumps(arranged, ensure_ascii=escaped, separators=separators)
            if text.isascii() or not escaped:
                yield text


def _arranged(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for names in itertools.islice(itertools.permutations(value), 24):
            for inner in itertools.islice(itertools.product(*(_arranged(value[name]) for name in names)), 24):
                yield dict(zip(names, inner, strict=True))
    elif isinstance(value, list):
        yield from map(list, itertools.islice(itertools.product(*map(_arranged, value)), 24))
    else:
        yield value


def suite() -> None:
    """Every schema of the suite: refused, or its instances taken and not taken."""
    for title, pattern in (("", "*.json"), (", formats asserted", "optional/format/*.json")):
        print(f"\n| suite{title} | schemas | refused | sound | exact | wrongly accepted | wrongly rejected |")
        print("|---|---|---|---|---|---|---|")
        files = [file for file in sorted((FOLDER / SUITE).glob(pattern)) if title or file.stem != "format"]
        for name, engine in (("hearth", ours), ("llguidance", theirs)):
            counted: Counter[str] = Counter()
            for case in (case for file in files for case in json.loads(file.read_text(encoding="utf-8"))):
                counted.update(_judge(engine, case))
            keys = ("schemas", "refused", "sound", "exact", "accepted", "rejected")
            print(f"| {name} | {' | '.join(str(counted[key]) for key in keys)} |", flush=True)


def _judge(engine: Callable[[Any], Taker], case: dict[str, Any]) -> Counter[str]:
    counted = Counter(schemas=1)
    try:
        takes = engine(case["schema"])
    except GrammarError:
        counted["refused"] = 1
        return counted
    for test in case["tests"]:
        taken = any(map(takes, writings(test["data"])))
        counted["accepted"] += taken and not test["valid"]
        counted["rejected"] += test["valid"] and not taken
    counted["sound"] = int(not counted["accepted"])
    counted["exact"] = int(not counted["accepted"] and not counted["rejected"])
    return counted


def hostile() -> None:
    """Every hostile grammar and schema in a process of its own, limited in time and memory."""
    print("\n| hostile | | compile, ms | worst token, ms | MB more | |\n|---|---|---|---|---|---|")
    for case in (*HOSTILE_GRAMMARS, *HOSTILE_SCHEMAS):
        for engine in ("hearth", "llguidance"):
            command = [sys.executable, "-m", "benchmarks.grammars", "--case", engine, case]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
                result = done.stdout.strip() if done.returncode == 0 else f"||| killed by {-done.returncode}"
            except subprocess.TimeoutExpired:
                result = f"||| not done after {SECONDS} s"
            print(f"| {case} | {engine} | {result} |", flush=True)


def one_case(engine: str, case: str) -> None:
    """Compile, and follow for 300 tokens of up to 31 equal characters, as a model that likes repetition."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pieces = [b"", *BYTES[1:], *(BYTES[byte] * times for byte in range(32, 127) for times in range(2, 32))]
    tokenizer = LLTokenizer(Tokens(pieces, 0)) if engine == "llguidance" else None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gbnf, schema = HOSTILE_GRAMMARS.get(case), HOSTILE_SCHEMAS.get(case)
    worst, end, compiled = 0.0, "followed", time.process_time()
    try:
        if tokenizer is None:
            program = schema_to_grammar(schema) if gbnf is None else compile_grammar(gbnf, int)
            follow: Callable[[], bool] = _follow_ours(Matcher(program), pieces)
        else:
            follow = _follow_theirs(their_matcher(tokenizer, gbnf=gbnf, schema=schema), pieces)
        compiled = time.process_time() - compiled
        for _ in range(TOKENS):
            begun = time.process_time()
            try:
                if not follow():
                    break
            finally:
                worst = max(worst, time.process_time() - begun)
    except GrammarError as error:
        end = " ".join(str(error).replace("|", "/").split())[:70]
        compiled = compiled if worst else time.process_time() - compiled
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(f"{compiled * 1e3:.0f} | {worst * 1e3:.1f} | {more} | {end}")


def _follow_ours(matcher: Matcher, pieces: list[bytes]) -> Callable[[], bool]:
    state = [b"a"]

    def follow() -> bool:
        if not matcher.allows(-1, state[0]):
            possible = [byte for byte, allowed in enumerate(matcher.first_bytes()) if allowed]
            if not possible:
                return False
            state[0] = BYTES[possible[len(possible) // 2]]
        run = state[0] * 31
        matcher.accept(-1, run if matcher.allows(-1, run) else state[0])
        return True

    return follow


def _follow_theirs(matcher: LLMatcher, pieces: list[bytes]) -> Callable[[], bool]:
    state = [pieces.index(b"a")]

    def follow() -> bool:
        mask = np.frombuffer(matcher.compute_logit_bias(), np.uint8)
        if matcher.is_error():
            raise GrammarError(matcher.get_error())
        possible = [token for token in np.flatnonzero(mask).tolist() if 0 < token < len(pieces)]
        if not possible:
            return False
        if state[0] not in possible:
            state[0] = min(possible, key=lambda token: (len(pieces[token]), abs(token - 80)))
        run = pieces[state[0]] * 31
        token = pieces.index(run) if run in pieces else state[0]
        return bool(matcher.consume_token(token if mask[token] else state[0]))

    return follow


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6  # MB


def spread(seconds: list[float]) -> str:
    """Median and 99th percentile in microseconds."""
    ordered = sorted(seconds)
    return f"{ordered[len(ordered) // 2] * 1e6:.0f} / {ordered[int(len(ordered) * 0.99)] * 1e6:.0f}"


def speed(model: Path) -> None:
    """CPU time of tokens that fit, and of choices among all tokens with random logits."""
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    handle = llama_cpp.llama_model_load_from_file(str(model).encode(), parameters)
    vocabulary = Vocabulary(handle, None)
    begun, before = time.process_time(), resident()
    assert vocabulary.beginnings.shape[1] == vocabulary.size
    print(f"\n{vocabulary.size} tokens. Tables: hearth {time.process_time() - begun:.2f} s", end="")
    print(f" and {resident() - before:.0f} MB", end="")
    pieces = [vocabulary.piece(token) for token in range(vocabulary.size)]
    begun, before = time.process_time(), resident()
    tokenizer = LLTokenizer(
        Tokens(pieces, vocabulary.ending_ids[0], vocabulary), eos_token=vocabulary.ending_ids[0]
    )
    print(f", llguidance {time.process_time() - begun:.2f} s and {resident() - before:.0f} MB\n")
    print(
        "| | | compile, ms | a fitting token, µs: median / p99 | a choice, µs: median / p99 |\n|---|---|---|---|---|"
    )
    cases: list[tuple[str, str, dict[str, Any]]] = [("schema", SCHEMA_TEXT, {"schema": SCHEMA})]
    cases += [(name, text, {"gbnf": gbnf}) for name, (gbnf, text) in GRAMMARS.items()]
    for name, text, source in cases:
        for engine in ("hearth", "llguidance"):
            if engine == "hearth":
                gbnf = source.get("gbnf")
                begun = time.process_time()
                program = compile_grammar(gbnf, int) if gbnf is not None else schema_to_grammar(SCHEMA)
                took = time.process_time() - begun
                figures = _time_ours(vocabulary, program, text)
            else:
                begun = time.process_time()
                matcher = their_matcher(tokenizer, **source)
                took = time.process_time() - begun
                figures = _time_theirs(vocabulary, matcher, text)
            print(
                f"| {name} | {engine} | {took * 1e3:.1f} | {' | '.join(map(spread, figures))} |", flush=True
            )


def _logits(vocabulary: Vocabulary) -> Iterator[np.ndarray[Any, np.dtype[np.float32]]]:
    chance = np.random.default_rng(1)
    for _ in range(TOKENS):
        yield chance.standard_normal(vocabulary.size, np.float32) * 3


def _time_ours(vocabulary: Vocabulary, program: Program, text: str) -> tuple[list[float], list[float]]:
    constraint = Constraint(vocabulary, program)
    fitting, chosen = [], []
    for token in vocabulary.tokenize(text, special=False):
        begun = time.process_time()
        assert constraint.allows(token)
        constraint.accept(token)
        fitting.append(time.process_time() - begun)
    constraint = Constraint(vocabulary, program)
    for logits in _logits(vocabulary):
        begun = time.process_time()
        search = Search(constraint, logits, endings=False)
        while (token := search.look()) is None and not search.allows(token := int(logits.argmax())):
            pass
        if token in vocabulary.ending_ids:
            break
        constraint.accept(token)
        chosen.append(time.process_time() - begun)
    return fitting, chosen


def _time_theirs(vocabulary: Vocabulary, matcher: LLMatcher, text: str) -> tuple[list[float], list[float]]:
    fresh = matcher.deep_copy()
    fitting, chosen = [], []
    for token in vocabulary.tokenize(text, special=False):
        begun = time.process_time()
        assert matcher.try_consume_tokens([token]) == 1
        fitting.append(time.process_time() - begun)
    for logits in _logits(vocabulary):
        begun = time.process_time()
        mask = np.frombuffer(fresh.compute_logit_bias(), np.uint8)[: vocabulary.size]
        logits[mask == 0] = -np.inf
        logits[vocabulary.ending_ids] = -np.inf
        token = int(logits.argmax())
        if not np.isfinite(logits[token]):
            break
        fresh.consume_token(token)
        chosen.append(time.process_time() - begun)
    return fitting, chosen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    case = parser.parse_args().case
    if case is not None:
        one_case(*case)
        return
    fetch()
    suite()
    hostile()
    for model in (FOLDER / VOCABULARY, Path("models/demo/hearth-demo.gguf")):
        speed(model)


if __name__ == "__main__":
    main()
