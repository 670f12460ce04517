"""Parses and follows random, mutated and hostile grammars.

`python -m tests.model_host.grammar.gbnf.fuzz FIRST LAST` runs the seeds from FIRST to LAST.

Runs as a process of its own, so that a crash, a hang or endless memory is seen for what it is. Prints one JSON object:
how often what happened, and the worst CPU time of one grammar in seconds.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections import Counter

from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.program import compile_grammar
from model_host.grammar.gbnf.syntax import GrammarError
from tests.model_host.grammar.gbnf.sentences import random_grammar

MEMORY = 2 * 1024**3  # bytes of address space
TOKENS = 60
CORPUS = (
    'root ::= (expr "=" ws term "\\n")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | num | "(" ws expr ")" ws\n'
    "ident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]{1,20} ws\nws ::= [ \\t\\n]*\n",
    'root ::= object\nvalue ::= object | array | string | number | "true"\nobject ::= "{" (pair ("," pair)*)? "}"\n'
    'pair ::= string ":" value\narray ::= "[" (value ("," value)*)? "]"\nstring ::= "\\"" [^"\\\\]* "\\""\n'
    'number ::= "-"? [0-9]{1,16} ("." [0-9]+)?\n',
    'root ::= "a" root "b" | "a" root "c" | \n',
    "root ::= <[7]> (!<[7]>)* <[7]> | [^\\x00-\\x1F]{0,200}\n",
    "root ::= r0\n"
    + "".join(f'r{n} ::= "a" r{n + 1} "x" | "a" r{n + 1} "y"\n' for n in range(30))
    + 'r30 ::= "a"\n',
    "root ::= r0\n" + "".join(f"r{n} ::= r{n + 1} | r{n + 1}?\n" for n in range(30)) + 'r30 ::= "a"\n',
    'root ::= ((("a"? "b"?){0,9}){0,9}){0,9} root "c" | [a-c]*\n',
)
PIECES = [
    "|",
    "(",
    ")",
    "*",
    "+",
    "?",
    "{0,2000}",
    "{2,}",
    '"a"',
    "[^b]",
    ".",
    "root",
    "r1",
    "\n",
    '""',
    "<[3]>",
    "::=",
    " ",
]


def mutated(chance: random.Random) -> str:
    """A grammar of the corpus or a random one, with a few mutations."""
    text = chance.choice([*CORPUS, random_grammar(chance)])
    for _ in range(chance.randint(0, 5)):
        start, end = sorted(chance.randint(0, len(text)) for _ in range(2))
        end = min(end, start + chance.randint(0, 30))
        change = chance.random()
        if change < 0.4:
            text = text[:start] + chance.choice(PIECES) + text[start:]
        elif change < 0.6:
            text = text[:start] + text[end:]
        elif change < 0.8:
            text = text[:start] + text[start:end] * chance.randint(2, 40) + text[end:]
        else:
            text = (
                text[:start]
                + chr(chance.choice([0, 10, 34, 92, 0x20AC, 0x1F600, chance.randint(1, 255)]))
                + text[end:]
            )
    return text


def follow(text: Matcher, chance: random.Random) -> None:
    """Generate text as a repetitive model would."""
    piece = b"a"
    for _ in range(TOKENS):
        if chance.random() < 0.3 or not text.allows(1, piece):
            possible = [byte for byte, allowed in enumerate(text.first_bytes()) if allowed]
            if not possible:
                return
            piece = bytes([chance.choice(possible)])
        run = piece * chance.randint(2, 31)
        token = run if text.allows(1, run) else piece
        if not text.allows(1, token):
            return
        text.accept(1, token)


def judge(seed: int) -> str:
    """The outcome of one grammar."""
    chance = random.Random(seed)
    grammar = mutated(chance)
    try:
        text = Matcher(compile_grammar(grammar, lambda name: name if isinstance(name, int) else 5))
    except GrammarError as error:
        assert str(error)
        return "refused"
    try:
        follow(text, chance)
    except GrammarError as error:
        assert "too ambiguous" in str(error)
        return "stopped"
    return "followed"


def main(first: int, last: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    counted: Counter[str] = Counter()
    worst = (0.0, 0)
    for seed in range(first, last):
        begun = time.process_time()
        counted[judge(seed)] += 1
        worst = max(worst, (time.process_time() - begun, seed))
    print(json.dumps({**counted, "worst_seconds": worst[0], "worst_seed": worst[1]}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
