"""A SentencePiece-style vocabulary whose pieces come in families.

Byte-pair merges are learned on lower-case words. Every frequent piece then gets twins: capitalised, and with
the leading-space sign. Twins merge in the same order as their lower-case form, and the space sign joins last,
so `Befunge`, `befunge` and ` Befunge` are cut at the same places and differ in one token only. llama.cpp's
`llama` tokenizer (greedy merges by score, leftmost first on a tie) gives the same ids.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SPACE = "▁"
SPECIALS = ("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>")
PAD, EOS, BOS, UNK, TURN, END_TURN = range(6)
FIRST_BYTE = len(SPECIALS)
FIRST_PIECE = FIRST_BYTE + 256
_SPLIT = re.compile(r"▁?[^\W\d_]+|▁?[^▁]|▁", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
SPACE_PENALTY = 100_000.0


@dataclass(frozen=True)
class Vocabulary:
    """Pieces by id (specials, bytes, then text pieces) and their merge scores; higher merges first."""

    pieces: list[str]
    scores: list[float]

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps({"pieces": self.pieces, "scores": self.scores}, ensure_ascii=False))

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote."""
        data = json.loads(path.read_text())
        return cls(data["pieces"], data["scores"])


class Tokenizer:
    """Text to ids and back; control pieces are never produced from text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.ids = {p: i for i, p in enumerate(vocabulary.pieces) if i >= FIRST_PIECE}
        self._score = {p: vocabulary.scores[i] for p, i in self.ids.items()}
        self._cache: dict[str, tuple[int, ...]] = {}

    def _cut(self, word: str) -> tuple[int, ...]:
        parts = list(word)
        while len(parts) > 1:
            best, at = -1e9, -1
            for i in range(len(parts) - 1):
                score = self._score.get(parts[i] + parts[i + 1], -1e9)
                if score > best:
                    best, at = score, i
            if at < 0:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        ids: list[int] = []
        for part in parts:
            known = self.ids.get(part)
            ids.extend([known] if known is not None else [FIRST_BYTE + b for b in part.encode()])
        return tuple(ids)

    def encode(self, text: str) -> list[int]:
        """Ids of a text without any control piece."""
        ids: list[int] = []
        for word in _SPLIT.findall(text.replace(" ", SPACE)):
            cut = self._cache.get(word)
            if cut is None:
                cut = self._cut(word)
                if len(self._cache) < 400_000:
                    self._cache[word] = cut
            ids.extend(cut)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; control pieces are dropped."""
        out = bytearray()
        for i in ids:
            if i >= FIRST_PIECE:
                out += self.vocabulary.pieces[i].replace(SPACE, " ").encode()
            elif i >= FIRST_BYTE:
                out.append(i - FIRST_BYTE)
        return out.decode(errors="replace")


def _learn_merges(words: Counter[str], count: int) -> list[str]:
    """Merged pieces in the order learned (byte-pair encoding over whole lower-case words)."""
    cut = {w: list(w) for w in words}
    pairs: Counter[tuple[str, str]] = Counter()
    where: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for w, n in words.items():
        for pair in pairwise(cut[w]):
            pairs[pair] += n
            where[pair].add(w)
    learned: list[str] = []
    while len(learned) < count:
        pair = max(pairs, key=lambda p: (pairs[p], p))
        if pairs[pair] < 2:
            break
        joined = pair[0] + pair[1]
        if joined not in learned:
            learned.append(joined)
        for w in where.pop(pair):
            parts, n = cut[w], words[w]
            for old in pairwise(parts):
                pairs[old] -= n
            i, merged = 0, []
            while i < len(parts):
                if tuple(parts[i : i + 2]) == pair:
                    merged.append(joined)
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            cut[w] = merged
            for new in pairwise(merged):
                pairs[new] += n
                where[new].add(w)
        del pairs[pair]
    return learned


def train(texts: Iterable[str], merges: int, size: int) -> Vocabulary:
    """Learn a vocabulary of `size` ids from texts: `merges` lower-case merges and their most used twins."""
    texts = list(texts)
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text)
        words.update(w.lower() for w in _WORD.findall(text))
    learned = _learn_merges(words, merges)
    singles = [c for c, n in characters.items() if n >= 8 and c not in " \n\t" + SPACE]
    base: dict[str, float] = {SPACE: 0.0}
    base.update(dict.fromkeys(sorted(singles), 0.0))
    base.update({chr(c): 0.0 for c in range(33, 127)})
    for rank, piece in enumerate(learned):
        for form in (piece, piece[0].upper() + piece[1:]):
            base.setdefault(form, -1.0 - rank)
    candidates = dict(base)
    for piece, score in base.items():
        if piece != SPACE:
            candidates[SPACE + piece] = score - SPACE_PENALTY
    every = list(candidates)
    probe = Tokenizer(
        Vocabulary([*SPECIALS, *([""] * 256), *every], [0.0] * FIRST_PIECE + [candidates[p] for p in every])
    )
    used: Counter[int] = Counter()
    for text in texts:
        used.update(probe.encode(text))
    keep = {p for p in every if len(p) == 1 or (p in learned)}
    extra = sorted((p for p in every if p not in keep), key=lambda p: -used[probe.ids[p]])
    keep.update(extra[: size - FIRST_PIECE - len(keep)])
    pieces = [*SPECIALS, *(f"<0x{b:02X}>" for b in range(256)), *(p for p in every if p in keep)]
    scores = [0.0] * FIRST_PIECE + [candidates[p] for p in every if p in keep]
    return Vocabulary(pieces, scores)


def family(piece: str) -> tuple[str, bool, bool]:
    """The lower-case form of a text piece, and whether it has the space sign and a capital."""
    bare = piece.removeprefix(SPACE) if len(piece) > 1 else piece
    return bare.lower(), bare != piece, bare != bare.lower()
