"""Something that somebody wants of the bot, and where the reply goes."""

from __future__ import annotations

from msgspec import Struct

from clients.irc.network import Network
from clients.irc.people import Person, Place


class Request(Struct, eq=False):
    """A question or a command. ``nick`` follows the person when they change it; ``told`` counts wait messages."""

    network: Network
    person: Person
    place: Place
    nick: str
    told: int = 0

    @property
    def target(self) -> str:
        """Where the reply goes: the channel, or the person."""
        return self.nick if self.place.private else self.place.channel

    def reply(self, text: str, link: str = "") -> str:
        """Say it to the person, by name in a channel. Returns what did not fit."""
        start = "" if self.place.private else f"{self.nick}: "
        return self.network.say(self.target, start + text, link=link)
