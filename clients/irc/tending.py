"""Nick and channels as they should be: asked for again and again, but not too often, until they are there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from clients.irc.config import ChannelConfig, NetworkConfig
from clients.irc.link import Link, LinkError

_NICK = ""  # in the list of what was asked for, beside the channels


class Tending:
    """Looks after the nick and the channels of one network. ``link`` is the current one, if there is any."""

    def __init__(
        self,
        config: NetworkConfig,
        nick: str,
        link: Callable[[], Link | None],
        say: Callable[[str, str], object],
    ) -> None:
        self._config = config
        self._nick = nick
        self._link = link
        self._say = say
        self._wake = asyncio.Event()
        self._tried: dict[str, float] = {}  # when it was last asked for, on the loop's clock
        self.wanted = {channel.name: channel for channel in config.channels}

    def begin(self) -> None:
        """A new connection: nothing was asked for yet."""
        self._tried.clear()
        self.wake()

    def wake(self) -> None:
        """Something may have changed: look now."""
        self._wake.set()

    def gone(self, nick: str) -> None:
        """A nick has become free; if it is ours, ask for it at once."""
        if self._fold(nick) == self._fold(self._nick):
            self._tried.pop(_NICK, None)
            self.wake()

    def channel(self, name: str) -> ChannelConfig | None:
        """The wanted channel of that name, however it is spelled."""
        return next(
            (each for each in self.wanted.values() if self._fold(each.name) == self._fold(name)), None
        )

    def want(self, channel: ChannelConfig) -> None:
        """Be in a channel from now on."""
        self.give_up(channel.name)
        self.wanted[channel.name] = channel
        self._tried.pop(channel.name, None)

    def give_up(self, name: str) -> bool:
        """Be in a channel no more; whether it was wanted."""
        known = self.channel(name)
        if known is not None:
            del self.wanted[known.name]
        self.wake()
        return known is not None

    async def run(self) -> None:
        """Tend until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.tend_seconds):
                    await self._wake.wait()
            self._wake.clear()
            link = self._link()
            if link is not None and link.ready:
                with contextlib.suppress(LinkError):  # whoever reads the link notices as well
                    await self._tend(link)

    async def _tend(self, link: Link) -> None:
        if link.fold(link.nickname) != link.fold(self._nick) and self._due(_NICK):
            if self._config.regain:
                target, text = self._config.regain.replace("{nick}", self._nick).split(" ", 1)
                self._say(target, text)
            await link.set_nickname(self._nick)
        asked = 0
        for channel in [each for each in self.wanted.values() if not link.joined(each.name)]:
            if not self._due(channel.name):
                continue
            asked += 1
            if asked > self._config.burst:
                await asyncio.sleep(self._config.seconds_per_line)
            await link.rawmsg("JOIN", channel.name, *([channel.key] if channel.key else []))
        wanted = {link.fold(name) for name in self.wanted}
        for name in [name for name in link.channels if link.fold(name) not in wanted]:
            await link.rawmsg("PART", name)

    def _due(self, what: str) -> bool:
        """Whether enough time has passed since it was last asked for; if so, it counts as asked for now."""
        now = asyncio.get_running_loop().time()
        if now - self._tried.get(what, -self._config.tend_seconds) < self._config.tend_seconds:
            return False
        self._tried[what] = now
        return True

    def _fold(self, name: str) -> str:
        link = self._link()
        return link.fold(name) if link is not None else name.lower()
