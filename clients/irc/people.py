"""Who said something, and where: the names under which limits and memory know them."""

from __future__ import annotations

from msgspec import Struct

from clients.irc.link import Heard
from clients.irc.network import Network


class Person(Struct, frozen=True):
    """A user. ``key`` is their services account, or their nick where there is none; ``speaker`` stands in memory.

    Where the server tells accounts, the speaker of somebody without one begins with ``~``: nobody can be taken for
    the owner of an account by using its name as a nick.
    """

    network: str
    nick: str
    key: str
    speaker: str
    account: str


class Place(Struct, frozen=True):
    """Where it was said: ``key`` names the conversation, ``channel`` is "" in private."""

    key: str
    channel: str

    @property
    def private(self) -> bool:
        """Whether nobody else can read it."""
        return not self.channel


def person_of(network: Network, heard: Heard) -> Person:
    """Who has sent a message."""
    account, nick = heard.account.casefold(), network.fold(heard.nick)
    if account:
        return Person(network.name, heard.nick, f"{network.name}/account:{account}", account, account)
    speaker = f"~{nick}" if network.knows_accounts else nick
    return Person(network.name, heard.nick, nick_key(network, nick), speaker, "")


def nick_key(network: Network, nick: str) -> str:
    """The key of somebody without an account."""
    return f"{network.name}/nick:{network.fold(nick)}"


def place_of(network: Network, heard: Heard, person: Person) -> Place:
    """Where a message was sent."""
    if heard.channel:
        return Place(f"{network.name}/{network.fold(heard.channel)}", heard.channel)
    return Place(f"{network.name}/private/{person.key}", "")
