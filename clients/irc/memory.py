"""The bot's memory: a conversation per place, stored by the gateway, and a small state file."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TypeVar
from weakref import WeakValueDictionary

import msgspec
import structlog
from msgspec import Struct

from clients.irc.gateway import Answer, Gateway, GatewayError, OnPlace
from clients.irc.requests import Request

_FILE = "state.json"
_LOCK = "lock"
# Overheard lines are sent together, before a question or when there are this many: the gateway counts the tokens of
# each, for which it would load an unloaded model.
_BATCH = 40
_MAX_OVERHEARD = 400  # in one place, while the gateway takes none
_INSTRUCTIONS = (
    "You are {nick}, a bot in {where}. People's lines begin with their names. Answer the last line in one to three "
    "short sentences of plain text, without lists and without your own name in front."
)

T = TypeVar("T")
log = structlog.get_logger(__name__)


class StateError(Exception):
    """The state file cannot be read or written; the message says what to do."""

    code = "state"


class State(Struct, forbid_unknown_fields=True):
    """The content of the state file."""

    conversations: dict[str, str] = {}  # ids at the gateway, by place
    forgotten: set[str] = set()  # users who do not want to be remembered
    ignored: set[str] = set()  # users who get no answer
    tasks: set[str] = set()  # users with tasks


class StateFile:
    """The state in memory. :meth:`save` replaces the file atomically."""

    def __init__(self, folder: Path) -> None:
        """Create the folder and read the file, if there is one. Raises StateError."""
        self.path = folder / _FILE
        self.state = State()
        self._lock: IO[bytes] | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"{folder} cannot be created: {error.strerror}; see `state_dir`") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StateError(f"{folder} cannot be written to: see its owner and mode, or `state_dir`")
        try:
            self.state = msgspec.json.decode(self.path.read_bytes(), type=State)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StateError(f"{self.path} cannot be read: {error.strerror}; see `state_dir`") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StateError(f"{self.path} is damaged ({error}); repair it or move it away") from None

    def hold(self) -> None:
        """Keep other processes out: they would overwrite what this one saves. Raises StateError."""
        lock = self.path.with_name(_LOCK)
        try:
            self._lock = lock.open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise StateError(
                f"another hearth-irc uses {lock.parent}: stop it, or set another `state_dir`"
            ) from None
        except OSError as error:
            raise StateError(f"{lock} cannot be locked: {error.strerror}; see `state_dir`") from None

    def release(self) -> None:
        """Let other processes in again."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def save(self) -> None:
        """Write to a temporary name, sync, and rename. Raises StateError."""
        text = msgspec.json.format(msgspec.json.encode(self.state, order="deterministic"), indent=1)
        temporary = ""
        try:
            handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{_FILE}.")
            with os.fdopen(handle, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path)
        except OSError as error:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            raise StateError(f"{self.path} cannot be written: {error.strerror}; see `state_dir`") from None


def instructions(request: Request) -> str:
    """Return the system prompt for replies in the request's place."""
    channel = request.channel_config
    if channel is not None and channel.instructions:
        return channel.instructions
    where = f"the IRC channel {channel.name}" if channel is not None else "a private chat on IRC"
    return _INSTRUCTIONS.format(nick=request.network.nick, where=where)


class _Locks(WeakValueDictionary[str, asyncio.Lock]):
    """A lock by place, which exists while a task holds it or waits for it."""

    def __getitem__(self, place: str) -> asyncio.Lock:
        return self.setdefault(place, asyncio.Lock())


class Memory:
    """Methods raise GatewayError and StateError."""

    def __init__(self, gateway: Gateway, file: StateFile) -> None:
        self._gateway = gateway
        self._file = file
        self._state = file.state
        self._locks = _Locks()
        # By place: the speaker and the text of each line.
        self._overheard: defaultdict[str, deque[tuple[str, str]]] = defaultdict(deque)

    def remembers(self, request: Request) -> bool:
        """Whether this user's lines here are stored. In private, users without an account are not remembered."""
        channel = request.channel_config
        kept = bool(request.account) if channel is None else channel.memory != "off"
        return kept and request.user not in self._state.forgotten

    def author(self, request: Request) -> str | None:
        """Return the user for the gateway's request log, None for one who does not want to be remembered."""
        return None if request.user in self._state.forgotten else request.user

    async def converse(self, request: Request, text: str, request_id: str, on_place: OnPlace) -> Answer:
        async with self._locks[request.place]:
            await self._keep_overheard(request)
            return await self._in_conversation(
                request,
                lambda name: self._gateway.converse(name, request.speaker, text, request_id, on_place),
            )

    async def keep_exchange(self, request: Request, question: str, answer: str) -> None:
        """Add a question and its answer from the wiki to the place's conversation, if the user is remembered."""

        async def post(conversation: str) -> None:
            await self._gateway.keep(conversation, request.speaker, question)
            await self._gateway.keep(conversation, "", answer, ours=True)

        async with self._locks[request.place]:
            if self.remembers(request):  # `!forget me` may have come since the question
                await self._keep_overheard(request)
                await self._in_conversation(request, post)

    def overhear(self, request: Request, text: str) -> bool:
        """Buffer a line that was not for the bot. Return whether :meth:`keep_overheard` is due."""
        if not self.remembers(request):
            return False
        lines = self._overheard[request.place]
        if len(lines) >= _MAX_OVERHEARD:
            log.warning("an overheard line is dropped: the gateway takes none", place=request.place)
            lines.popleft()
        lines.append((request.speaker, text))
        return len(lines) % _BATCH == 0

    async def keep_overheard(self, request: Request) -> None:
        async with self._locks[request.place]:
            await self._keep_overheard(request)

    async def forget(self, request: Request) -> tuple[int, int]:
        """Erase what a user said on the network, and remember nothing of theirs from now on.

        Return how many messages and how many recorded questions were erased.
        """
        self._state.forgotten.add(request.user)
        self._file.save()
        questions = await self._gateway.erase_requests(request.user)
        erased = 0
        places = {*self._state.conversations, *self._overheard}
        for place in sorted(place for place in places if place.startswith(f"{request.network.name}/")):
            async with self._locks[place]:
                lines = self._overheard[place]
                self._overheard[place] = deque(line for line in lines if line[0] != request.speaker)
                erased += len(lines) - len(self._overheard[place])
                if (conversation := self._state.conversations.get(place)) is not None:
                    with self._dropped_if_gone(place):
                        erased += await self._gateway.forget(conversation, request.speaker)
        return erased, questions

    async def catch_up(self, author: str | None) -> None:
        """Erase the record of a question whose author said `!forget me` before the answer came."""
        if author in self._state.forgotten:
            await self._gateway.erase_requests(author)

    def remember(self, request: Request) -> bool:
        """Undo the lasting part of :meth:`forget`. Return whether there was anything to undo."""
        if request.user not in self._state.forgotten:
            return False
        self._state.forgotten.discard(request.user)
        self._file.save()
        return True

    async def erase(self, request: Request) -> bool:
        """Erase the whole conversation of the place. Return whether there was one."""
        async with self._locks[request.place]:
            self._overheard.pop(request.place, None)
            conversation = self._state.conversations.get(request.place)
            if conversation is None:
                return False
            with self._dropped_if_gone(request.place):
                await self._gateway.erase(conversation)
                self._drop(request.place)
            return True

    async def restore(self, request: Request) -> bool:
        """Store the user's last private message with its secrets. Return whether there is a conversation."""
        return await self._with_known(request, self._gateway.restore)

    async def change(self, request: Request, field: str, value: str) -> bool:
        """Change a field of the place's conversation. Return whether there was one."""
        return await self._with_known(request, partial(self._gateway.change, field=field, value=value))

    async def _with_known(self, request: Request, call: Callable[[str], Awaitable[None]]) -> bool:
        """Call with the id of the place's conversation. Return whether there was one."""
        async with self._locks[request.place]:
            if (conversation := self._state.conversations.get(request.place)) is None:
                return False
            with self._dropped_if_gone(request.place):
                await call(conversation)
            return True

    async def _keep_overheard(self, request: Request) -> None:
        lines = self._overheard[request.place]
        while lines:
            line = lines.popleft()  # now, because a full buffer drops its first line meanwhile
            try:
                await self._in_conversation(
                    request, partial(self._gateway.keep, speaker=line[0], text=line[1])
                )
            except BaseException:
                lines.appendleft(line)
                raise
        self._overheard.pop(request.place, None)

    async def _in_conversation(self, request: Request, post: Callable[[str], Awaitable[T]]) -> T:
        """Call ``post`` with the place's conversation, or with a new one if there is none any more."""
        known = self._state.conversations.get(request.place)
        if known is not None:
            with self._dropped_if_gone(request.place):
                return await post(known)
        conversation = await self._gateway.begin(f"irc {request.place}"[:200], instructions(request))
        self._state.conversations[request.place] = conversation
        self._file.save()
        return await post(conversation)

    @contextmanager
    def _dropped_if_gone(self, place: str) -> Iterator[None]:
        """Drop the place's conversation from the state if the gateway no longer has it (404)."""
        try:
            yield
        except GatewayError as error:
            if error.status != 404:
                raise
            log.warning("the gateway no longer has the conversation", place=place)
            self._drop(place)

    def _drop(self, place: str) -> None:
        self._state.conversations.pop(place, None)
        self._file.save()
