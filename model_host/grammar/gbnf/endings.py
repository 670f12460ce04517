"""The shortest text that ends a sentence of a grammar, from any step of its program."""

from __future__ import annotations

import math

from model_host.grammar.gbnf.program import CALL, CHARACTER, DONE, FORK, JUMP, RETURN, Program


class Endings:
    """Lengths are in bytes, infinite where no text leads to an end: tokens without a text are not considered."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._nodes: list[float] = []  # by node: to the end of its character; edges lead to earlier nodes
        for edges in program.edges:
            rests = (0.0 if following == DONE else self._nodes[following] for _, _, following in edges)
            self._nodes.append(1 + min(rests, default=math.inf))
        self._steps = [math.inf] * len(program.kinds)  # to the end of its rule
        while self._spread():
            pass

    def length(self, step: int) -> float:
        """From a step to the end of its rule."""
        return self._steps[step]

    def rest(self, node: int) -> float:
        """From within a character to its end."""
        return self._nodes[node]

    def text(self, node: int, steps: list[int]) -> bytes:
        """From within a character to its end, then from the last of ``steps`` to the end of its rule, and so on."""
        kinds, operands = self._program.kinds, self._program.operands
        made = self._character(node)
        pending = list(steps)
        while pending:
            step = pending.pop()
            kind, operand = kinds[step], operands[step]
            if kind == CHARACTER:
                made += self._character(operand)
                pending.append(step + 1)
            elif kind == CALL:
                pending += [step + 1, operand]
            elif kind == FORK:  # equal: out of the repetition
                pending.append(step + 1 if self._steps[step + 1] < self._steps[operand] else operand)
            elif kind == JUMP:
                pending.append(operand)
            else:
                assert kind == RETURN, "a token has no text"
        return made

    def _character(self, node: int) -> bytes:
        made = bytearray()
        while node != DONE:
            low, _, node = min(
                self._program.edges[node], key=lambda edge: 0 if edge[2] == DONE else self._nodes[edge[2]]
            )
            made.append(low)
        return bytes(made)

    def _spread(self) -> bool:
        """Improve the lengths, from the last step to the first; False when they are final."""
        kinds, operands, known = self._program.kinds, self._program.operands, self._steps
        changed = False
        for step in range(len(kinds) - 1, -1, -1):
            kind, operand = kinds[step], operands[step]
            if kind == RETURN:
                length = 0.0
            elif kind == CHARACTER:
                length = self._nodes[operand] + known[step + 1]
            elif kind == CALL:
                length = known[operand] + known[step + 1]
            elif kind == JUMP:
                length = known[operand]
            elif kind == FORK:
                length = min(known[operand], known[step + 1])
            else:
                length = math.inf
            if length < known[step]:
                known[step], changed = length, True
        return changed
