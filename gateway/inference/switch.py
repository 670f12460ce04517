"""One Inference over changing hosts, so that the chat model can be switched while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import structlog

from gateway.base.aio import finish
from gateway.base.errors import ConfigurationError, HearthError, OverloadedError
from gateway.inference.host import HostInference
from gateway.inference.interface import GenerateCall, GenerationEvent, HostHealth, KeepAlive, ModelInfo
from gateway.models.catalog import ResolvedModel
from gateway.models.served import ServedModel
from model_host.protocol import Message, Tool

log = structlog.get_logger(__name__)

Resolve = Callable[[], ResolvedModel]
# Makes the host of a model; the second argument returns the models of the other hosts.
MakeHost = Callable[[Resolve, Callable[[], Sequence[ResolvedModel]]], HostInference]

_RETRY_SECONDS = 5.0


@dataclass(frozen=True)
class ModelSwitch:
    """Exchanges the model of ``inference``, which is None for one that cannot be exchanged: given, or upstream.

    ``named`` finds a model by name or path, and how to find it again; it blocks on the file system.
    """

    inference: SwitchableInference | None
    named: Callable[[str], tuple[ResolvedModel, Resolve]]

    @property
    def switching_to(self) -> str | None:
        """The model that is being loaded to replace the present one."""
        return self.inference.switching_to if self.inference is not None else None

    async def use(self, name: str) -> None:
        """Serve the model of that name. Raises as ``named`` and :meth:`SwitchableInference.switch`."""
        model, resolve = await asyncio.to_thread(self.named, name)
        if self.inference is None:
            raise ConfigurationError(
                "the model cannot be switched: upstream servers have it, or this server's caller gave it"
            )
        await self.inference.switch(model, resolve)


class SwitchableInference:
    """The :class:`gateway.inference.interface.Inference` of the served model.

    A call ends on the host that it began on. :meth:`switch` starts the new model's host beside the old one, and waits
    for the old one's end first only if memory does not hold both; new calls then wait at ``_open``.
    """

    def __init__(self, served: ServedModel, resolve: Resolve, make: MakeHost, drain_seconds: float) -> None:
        self.switching_to: str | None = None  # the model whose host is being started
        self._served = served
        self._make = make
        self._drain_seconds = drain_seconds
        self._hosts: list[HostInference] = []
        self._retiring: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._host = self._add(resolve)

    @property
    def loaded(self) -> list[ResolvedModel]:
        """The models that are loaded or being loaded."""
        return [model for host in self._hosts for model in host.loaded]

    async def switch(self, model: ResolvedModel, resolve: Resolve) -> None:
        """Load ``model`` and send it all further calls; ``resolve`` finds it again at later starts.

        Raises HearthError while another switch runs, OverloadedError when the old model's requests do not end in time
        to make room, and ModelUnavailableError when the model cannot be loaded. The old model then keeps serving.
        """
        if self.switching_to is not None:
            raise HearthError(
                f"a switch to {self.switching_to} is in progress; try again when it has ended",
                code="switch_in_progress",
                status=409,
                retry_after=_RETRY_SECONDS,
            )
        if model.path == self._served.current.path:
            return
        self.switching_to = model.name
        old, new = self._host, self._add(resolve)
        try:
            if not await asyncio.to_thread(new.fits_in_full):
                self._open.clear()
                await self._drained(old)
            await new.warm()
            self._host, self._served.current = new, model
            self._retire(old)
        except BaseException:
            await finish(self._end(new))  # before the old one may need its memory
            raise
        finally:
            self.switching_to = None
            self._open.set()
        log.info("model_switched", model=model.name)

    async def _drained(self, host: HostInference) -> None:
        try:
            async with asyncio.timeout(self._drain_seconds):
                await host.unload()
        except TimeoutError:
            raise OverloadedError(
                f"memory does not hold both models, and requests to {self._served.current.name} are still running "
                f"after {self._drain_seconds:g} s",
                retry_after=_RETRY_SECONDS,
            ) from None

    def _add(self, resolve: Resolve) -> HostInference:
        host = self._make(
            resolve, lambda: [model for other in self._hosts if other is not host for model in other.loaded]
        )
        self._hosts.append(host)
        return host

    def _retire(self, host: HostInference) -> None:
        """Stop a host once its requests have ended."""

        async def end() -> None:
            await host.unload()
            await self._end(host)

        task = asyncio.create_task(end(), name="model-host-retiring")
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _end(self, host: HostInference) -> None:
        await host.close()
        self._hosts.remove(host)

    async def _serving(self) -> HostInference:
        await self._open.wait()
        return self._host

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        async with aclosing((await self._serving()).generate(call)) as events:
            async for event in events:
                yield event

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        return await (await self._serving()).count(texts, keep_alive=keep_alive)

    async def count_prompt(self, messages: list[Message], *, tools: Sequence[Tool] = ()) -> int:
        return await (await self._serving()).count_prompt(messages, tools=tools)

    async def tokenize(self, text: str, *, ends: bool = False) -> list[int]:
        return await (await self._serving()).tokenize(text, ends=ends)

    async def detokenize(self, tokens: list[int]) -> str:
        return await (await self._serving()).detokenize(tokens)

    async def token_bytes(self, tokens: list[int]) -> list[bytes]:
        return await (await self._serving()).token_bytes(tokens)

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        return await (await self._serving()).model_info(keep_alive=keep_alive)

    async def warm(self) -> None:
        await (await self._serving()).warm()

    def health(self) -> HostHealth:
        return self._host.health()

    async def check(self) -> None:
        if self._open.is_set():  # otherwise calls wait for the new model
            await self._host.check()

    async def refresh_stats(self) -> None:
        await self._host.refresh_stats()

    async def forget(self, owner: str) -> None:
        for host in list(self._hosts):
            await host.forget(owner)

    async def unload(self) -> None:
        await self._host.unload()

    async def close(self) -> None:
        for host in list(self._hosts):
            await host.close()
        await asyncio.gather(*self._retiring)
