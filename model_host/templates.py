"""Chat prompts as tokens, with template text and user text kept apart.

The model file's chat template is rendered with a placeholder in the place of every message, so that the
template decides about turns and markers but never sees what people wrote. Only the text around the
placeholders is tokenized with control tokens; message text is tokenized as plain text, so that nothing
in it can become ``<end_of_turn>``.
"""

from __future__ import annotations

import contextlib
import secrets
import selectors
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from model_host.protocol import Message, TextPart

RENDER_TIMEOUT_SECONDS = 5.0
_OPEN, _CLOSE = "\ue000", "\ue001"


class ChatTemplateError(ValueError):
    """The chat template is missing, hostile, or refuses these messages."""


class Tokenizer(Protocol):
    """Text to token ids; with ``special`` control tokens are recognised in the text."""

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Token ids of ``text``, nothing added before or after."""
        ...


class TemplateWorker:
    """The child process that renders. Started on first use, killed and replaced when it overruns."""

    def __init__(self, timeout: float = RENDER_TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process ahead of the first rendering."""
        with self._lock:
            self._ensure()

    def render(self, request: dict[str, Any]) -> str:
        """The rendered text. Raises :class:`ChatTemplateError`."""
        with self._lock:
            process = self._ensure()
            assert process.stdin is not None
            try:
                process.stdin.write(msgspec.json.encode(request) + b"\n")
                process.stdin.flush()
                answer = self._read_line(process)
            except (OSError, ChatTemplateError):
                self._kill()
                raise ChatTemplateError(
                    "the model's chat template took too long or too much memory"
                ) from None
        if "error" in answer:
            raise ChatTemplateError(answer["error"])
        return answer["text"]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._kill()

    def _ensure(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "model_host.template_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def _read_line(self, process: subprocess.Popen[bytes]) -> dict[str, str]:
        assert process.stdout is not None
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(self._timeout):
                    raise ChatTemplateError("timeout")
                piece = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
                if not piece:
                    raise ChatTemplateError("the renderer ended")
                line += piece
        return msgspec.json.decode(line, type=dict[str, str])

    def _kill(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # a broken pipe only says what we know: it is dead
                    pipe.close()
        self._process.wait()
        self._process = None


class PromptBuilder:
    """Turns messages into prompt tokens, and tells how many of the first ones come from shared text only."""

    def __init__(
        self, template: str | None, tokenizer: Tokenizer, worker: TemplateWorker, bos: str, eos: str
    ) -> None:
        self._template = template
        self._tokenizer = tokenizer
        self._worker = worker
        self._bos, self._eos = bos, eos
        # One rendering per shape of conversation: the placeholders make it independent of the text.
        self._skeleton = lru_cache(maxsize=256)(self._render)

    def build(self, messages: Sequence[Message]) -> tuple[list[int], int]:
        """Token ids of the whole prompt, and the length of its shared beginning.

        Message text is stripped at both ends, as Gemma's templates do themselves. Raises ChatTemplateError.
        """
        bodies = [_Body.of(message) for message in messages]
        roles = [message.role for message in messages]
        try:
            pieces = self._skeleton(tuple(roles))
        except ChatTemplateError:
            if roles[0] != "system" or len(roles) < 2:
                raise
            # Some Gemma templates know no system role: its text then opens the first user message.
            bodies[:2] = [bodies[0].joined(bodies[1])]
            pieces = self._skeleton(tuple(roles[1:]))
        tokens: list[int] = []
        shared = 0
        for piece in pieces:
            all_shared = shared == len(tokens)
            if isinstance(piece, str):
                new = self._tokenizer.tokenize(piece, special=True)
                shared += len(new) if all_shared else 0
            else:
                new = self._tokenizer.tokenize(bodies[piece].text, special=False)
                shared += self._shared_tokens(bodies[piece], new) if all_shared else 0
            tokens += new
        return tokens, shared

    def _shared_tokens(self, body: _Body, tokens: list[int]) -> int:
        if body.shared == len(body.text):
            return len(tokens)
        if not body.shared:
            return 0
        alone = self._tokenizer.tokenize(body.text[: body.shared], special=False)
        same = 0
        for ours, theirs in zip(tokens, alone, strict=False):
            if ours != theirs:
                break
            same += 1
        return same

    def _render(self, roles: tuple[str, ...]) -> list[str | int]:
        """The template's text for this shape, cut at the messages: strings, and indices of messages."""
        if self._template is None:
            raise ChatTemplateError("this model file has no chat template; use a plain prompt instead")
        nonce = secrets.token_hex(8)
        marks = [f"{_OPEN}{nonce}.{i}{_CLOSE}" for i in range(len(roles))]
        text = self._worker.render(
            {
                "template": self._template,
                "messages": [
                    {"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)
                ],
                "add_generation_prompt": True,
                "bos_token": self._bos,
                "eos_token": self._eos,
                "enable_thinking": False,
                "tools": None,
            }
        )
        return _cut(text, marks)


def _cut(text: str, marks: list[str]) -> list[str | int]:
    pieces: list[str | int] = []
    for index, mark in enumerate(marks):
        before, found, text = text.partition(mark)
        if not found:
            raise ChatTemplateError(f"the model's chat template leaves out message {index + 1}")
        pieces += [before, index] if before else [index]
    return [*pieces, text] if text else pieces


class _Body(msgspec.Struct, frozen=True):
    """The text of a message and how many of its first characters are shared."""

    text: str
    shared: int

    @staticmethod
    def of(message: Message) -> _Body:
        parts = [TextPart(message.content)] if isinstance(message.content, str) else message.content
        whole = "".join(part.text for part in parts)
        shared = 0
        for part in parts:
            if not part.shared:
                break
            shared += len(part.text)
        lead = len(whole) - len(whole.lstrip())
        text = whole.strip()
        return _Body(text, min(max(0, shared - lead), len(text)))

    def joined(self, other: _Body) -> _Body:
        text = f"{self.text}\n\n{other.text}"
        whole = self.shared == len(self.text)
        return _Body(text, self.shared if not whole else self.shared + 2 + other.shared)
