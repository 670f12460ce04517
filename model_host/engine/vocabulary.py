"""The model's vocabulary: tokenizes and detokenizes through llama.cpp."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Iterator
from functools import cached_property
from itertools import repeat
from typing import Any

import llama_cpp
import numpy as np

from model_host.engine.long_text import PART_CHARS, in_parts
from model_host.grammar.gbnf.syntax import GrammarError

_CONTROL = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
_SPECIAL = _CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
_TOKENIZED_IN_PARTS = (llama_cpp.LLAMA_VOCAB_TYPE_SPM, llama_cpp.LLAMA_VOCAB_TYPE_BPE)
_NO_CHARACTER = "\ufdd0"  # a Unicode noncharacter
_PIECE_BYTES = 64  # longer pieces are rare
_BEGINNING = 4
_END_OF_MESSAGE = b"tokenizer.ggml.eom_token_id"


class Vocabulary:
    """The tokenizer of a loaded model. Thread-safe, because llama.cpp only reads here."""

    def __init__(self, model: llama_cpp.llama_model_p, template: str | None) -> None:
        self.handle = llama_cpp.llama_model_get_vocab(model)
        self.size: int = llama_cpp.llama_vocab_n_tokens(self.handle)
        self._template = template or ""
        self._model = model
        # Scanning a large vocabulary takes a while, so a thread does it beside what follows the load.
        self._scan = threading.Thread(target=self._scan_tokens, name="vocabulary", daemon=True)
        self._scan.start()

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Token ids of ``text``, without BOS. Unless ``special``, the result contains no control token.

        llama.cpp does not recognise control tokens in plain text, but those that a model file types as user-defined; if
        the chat template uses such a token as a marker, its text is split here.
        """
        tokens = self._tokenize(text, special)
        if special or self._reserved.isdisjoint(tokens):
            return tokens
        plain: list[int] = []
        for token in tokens:
            if token not in self._reserved:
                plain.append(token)
                continue
            marker = self.text(token)
            plain += [t for half in (marker[:1], marker[1:]) for t in self.tokenize(half, special=False)]
        return plain

    def tokenize_whole(self, text: str) -> list[int]:
        """Token ids of plain ``text`` with the special tokens that the model wants around it."""
        if self._is_long(text):
            return self._with_ends(self._tokenize(text, special=False))
        return self._call(text, special=False, ends=True)

    def whole(self, tokens: list[int]) -> list[int]:
        """``tokens`` of a text with the special tokens that the model wants around it.

        Raises ValueError for an id outside the vocabulary, or of a control token.
        """
        for token in tokens:
            if not 0 <= token < self.size:
                raise ValueError(f"token {token} is outside the vocabulary of {self.size}")
            if token in self._reserved:
                raise ValueError(f"token {token} is a control token; only text has a vector")
        return self._with_ends(tokens)

    def spell(self, text: bytes) -> list[int]:
        """Tokens of exactly these bytes, wherever they are in a text; none if a byte has no token."""
        lead, length = self._lead
        tokens = self._call(lead + text.decode("utf-8", "replace"), special=False)[length:]
        if b"".join(map(self.piece, tokens)) == text:
            return tokens
        alone = [self._alone.get(byte) for byte in text]
        return [token for token in alone if token is not None] if None not in alone else []

    @cached_property
    def _alone(self) -> dict[int, int]:
        """The token that is only this byte."""
        first, second = self.beginnings[0], self.beginnings[1]
        found = np.flatnonzero((first >= 0) & (second < 0))
        return dict(zip(first[found].tolist(), found.tolist(), strict=True))

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to the output; empty for control tokens."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._piece(token)
        return known

    def token_of(self, spelling: str) -> int | None:
        """The token of exactly this spelling, control tokens included."""
        tokens = self._tokenize(spelling, special=True)
        return tokens[0] if len(tokens) == 1 else None

    def grammar_token(self, name: int | str) -> int:
        """The id of a token that a grammar names, or gives by its id. Raises GrammarError."""
        token = self.token_of(name) if isinstance(name, str) else name
        if token is None or token >= self.size:
            shown = f"<[{name}]>" if isinstance(name, int) else name[:60]
            raise GrammarError(
                f"{shown} in the grammar is not one token of the model's vocabulary of {self.size}"
            )
        if token in self.ending_ids:
            raise GrammarError(
                f"the token {token} in the grammar ends a reply; the end of `root` means that already"
            )
        return token

    @cached_property
    def beginnings(self) -> np.ndarray[Any, np.dtype[np.int16]]:
        """The first bytes of all tokens: row i has byte i of each, or -1 after its end. Slow: 0.3 s for 262,144."""
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        view = memoryview(buffer).cast("B")
        lengths = np.empty(self.size, np.int32)
        first = bytearray()
        for token in range(self.size):
            # For a token longer than the buffer the result is its negated length, and nothing is written.
            written = llama_cpp.llama_token_to_piece(self.handle, token, buffer, _PIECE_BYTES, 0, False)
            first += (view if written >= 0 else self.piece(token))[:_BEGINNING]
            lengths[token] = abs(written)
        found = np.frombuffer(first, np.uint8).reshape(-1, _BEGINNING).T.astype(np.int16)
        found[np.arange(_BEGINNING)[:, None] >= lengths] = -1
        return found

    def text(self, token: int) -> str:
        """The token's spelling in the vocabulary, ``""`` for an id outside it."""
        if not 0 <= token < self.size:
            return ""
        raw = llama_cpp.llama_vocab_get_text(self.handle, token)
        return raw.decode("utf-8", "replace") if raw else ""

    def ends(self, token: int) -> bool:
        """Whether the token ends a generation (end of turn, end of text, …)."""
        return bool(llama_cpp.llama_vocab_is_eog(self.handle, token))

    def control(self, spelling: str) -> int | None:
        """The control token of this spelling, if there is one."""
        token = self.token_of(spelling)
        return token if token in self._reserved else None

    def controls(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each control token in a template's text, the longest one where several begin.

        No pattern of all spellings: to compile that of 6,250 takes 0.1 s.
        """
        at = 0
        while (found := self._opening.search(text, at)) is not None:
            at = found.start()
            ends = (at + length for length in self._lengths if text[at : at + length] in self._spellings)
            if (end := next(ends, 0)) > at:
                yield at, end
            at = max(end, at + 1)

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(self.text(token) for token in self._reserved) - {""}

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted(set(map(len, self._spellings)), reverse=True)

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        first = "".join(sorted({re.escape(spelling[0]) for spelling in self._spellings}))
        return re.compile(f"[{first}]" if first else "(?!)")

    @property
    def bos(self) -> str:
        """Text of the token that begins a prompt."""
        return self.text(llama_cpp.llama_vocab_bos(self.handle))

    @property
    def bos_id(self) -> int | None:
        """The id that a plain prompt starts with, if the model wants one."""
        token = llama_cpp.llama_vocab_bos(self.handle)
        return token if token >= 0 and llama_cpp.llama_vocab_get_add_bos(self.handle) else None

    @property
    def fill_in(self) -> tuple[int, int, int] | None:
        """The control tokens before a text, before what follows it, and before what goes between; None without."""
        of = llama_cpp.llama_vocab_fim_pre, llama_cpp.llama_vocab_fim_suf, llama_cpp.llama_vocab_fim_mid
        before, after, between = (int(each(self.handle)) for each in of)
        return (before, after, between) if min(before, after, between) >= 0 else None

    @property
    def eos(self) -> str:
        return self.text(llama_cpp.llama_vocab_eos(self.handle))

    @property
    def ending_ids(self) -> list[int]:
        self._scan.join()
        return self._endings

    @property
    def _reserved(self) -> frozenset[int]:
        """Tokens that plain text must not become: control tokens, and markers of the template."""
        self._scan.join()
        return self._markers

    def _scan_tokens(self) -> None:
        attributes = list(map(llama_cpp.llama_vocab_get_attr, repeat(self.handle), range(self.size)))
        special = {token for token, attribute in enumerate(attributes) if attribute & _SPECIAL}
        self._endings = sorted(token for token in special | self._named() if self.ends(token))
        self._markers = frozenset(self._endings) | {
            token for token in special if attributes[token] & _CONTROL or self._is_marker(token)
        }

    def _is_marker(self, token: int) -> bool:
        spelling = self.text(token)
        return len(spelling) > 1 and not spelling.isspace() and spelling in self._template

    def _named(self) -> set[int]:
        """The end tokens that the file names, whatever type it gives them. llama.cpp adds no others."""
        known = (
            llama_cpp.llama_vocab_eos,
            llama_cpp.llama_vocab_eot,
            llama_cpp.llama_vocab_fim_pad,
            llama_cpp.llama_vocab_fim_rep,
            llama_cpp.llama_vocab_fim_sep,
        )
        named = {int(of(self.handle)) for of in known}
        buffer = ctypes.create_string_buffer(32)  # this one has no function of its own
        if llama_cpp.llama_model_meta_val_str(self._model, _END_OF_MESSAGE, buffer, len(buffer)) > 0:
            named.add(int(buffer.value))
        return named - {-1}

    @cached_property
    def _pieces(self) -> dict[int, bytes]:
        return {}

    def _piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        written = llama_cpp.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        if written < 0:
            buffer = ctypes.create_string_buffer(-written)
            written = llama_cpp.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(0, written)]

    def _with_ends(self, tokens: list[int]) -> list[int]:
        eos = llama_cpp.llama_vocab_eos(self.handle)
        wants_eos = eos >= 0 and llama_cpp.llama_vocab_get_add_eos(self.handle)
        bos = self.bos_id
        return [*([] if bos is None else [bos]), *tokens, *([eos] if wants_eos else [])]

    def _is_long(self, text: str) -> bool:
        return len(text) > PART_CHARS and llama_cpp.llama_vocab_type(self.handle) in _TOKENIZED_IN_PARTS

    @cached_property
    def _lead(self) -> tuple[str, int]:
        """A prefix for all but the first part of a text, and its number of tokens.

        Some tokenizers put a space before every text. There the prefix is a character that merges with no other, so
        that the space goes before it; elsewhere it is empty.
        """
        if not self.piece(self._call("a", special=False)[0]).startswith(b" "):
            return "", 0
        return _NO_CHARACTER, len(self._call(_NO_CHARACTER, special=False))

    def _tokenize(self, text: str, special: bool) -> list[int]:
        if special or not self._is_long(text):
            return self._call(text, special)
        first, *others = in_parts(text)
        tokens = self._call(first, special)
        lead, length = self._lead
        for part in others:
            tokens += self._call(lead + part, special)[length:]
        return tokens

    def _call(self, text: str, special: bool, ends: bool = False) -> list[int]:
        raw = text.encode("utf-8", "surrogatepass")
        room = len(raw) + 4
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self.handle, raw, len(raw), tokens, room, ends, special)
        if count < 0:
            tokens = (llama_cpp.llama_token * -count)()
            count = llama_cpp.llama_tokenize(self.handle, raw, len(raw), tokens, -count, ends, special)
        return list(tokens[:count])
