"""The configuration as values: every setting, its range and default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=10_000)]
Port = Annotated[int, Meta(ge=1, le=65_535)]
_MOST_SECRET_BYTES = 64 * 1024

Mode = Literal["wiki", "chat"]
Memory = Literal["addressed", "all", "off"]


class ConfigError(Exception):
    """The file cannot be used; the message names the field, its range and the remedy."""


class GatewayConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where questions go. Without ``key_file`` the key is in HEARTH_API_KEY, or none is needed."""

    url: Annotated[str, Meta(pattern=r"^https?://[^/\s]+/?$")] = "http://127.0.0.1:8420"
    key_file: Path | None = None
    style: str = "irc"  # of answers from the wiki: a prompt `answer_STYLE` of the gateway
    timeout_seconds: Seconds = 330.0  # a little over the gateway's own deadline
    max_concurrent: Count = 4  # questions at once, over all networks
    max_waiting: Count = 32  # more are refused
    reply_tokens: Count = 200  # of replies in the mode `chat`


class BotConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How it appears and when it feels addressed; a network may have its own names."""

    nick: str = "hearth"
    alternatives: list[str] = []
    username: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,10}$")] = "hearth"
    realname: Annotated[str, Meta(min_length=1, max_length=120)] = "hearth, answers from a wiki"
    prefix: Annotated[str, Meta(max_length=16)] = ""  # a line that begins with it is a question too
    command_mark: Annotated[str, Meta(min_length=1, max_length=4)] = "!"
    state_dir: Path = Path("~/.local/state/hearth-irc")


class ReplyConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The shape of replies, and what is shown meanwhile."""

    lines: Annotated[int, Meta(ge=1, le=10)] = 3
    characters: Annotated[int, Meta(ge=40, le=450)] = 350  # of a line
    foreign_links: bool = False  # may an answer contain links that are no source of it?
    typing: bool = True  # the typing indicator, on servers that have it
    patience_seconds: Seconds = 10.0  # then one line tells how long the queue is
    keep_seconds: Seconds = 120.0  # a reply waits this long for a lost connection to come back


class LimitConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Token buckets: ``burst`` questions at once, then one every ``seconds``."""

    user_burst: Count = 4
    user_seconds: Seconds = 20.0
    channel_burst: Count = 8
    channel_seconds: Seconds = 6.0


class SaslConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The services account. PLAIN needs ``account`` and a password, EXTERNAL the network's client certificate."""

    mechanism: Literal["PLAIN", "EXTERNAL"] = "PLAIN"
    account: Annotated[str, Meta(max_length=64, pattern=r"^[^\x00\s]*$")] = ""
    password: Annotated[str, Meta(max_length=300)] = ""
    password_file: Path | None = None


class ChannelConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A channel. ``memory``: lines to the bot, all lines, or none go into its conversation."""

    name: str
    key: Annotated[str, Meta(max_length=64, pattern=r"^[^\s,:\x00][^\s,\x00]*$|^$")] = ""
    mode: Mode = "wiki"
    memory: Memory = "addressed"
    prefix: Annotated[str, Meta(max_length=16)] | None = None  # instead of the bot's
    instructions: Annotated[str, Meta(max_length=4000)] = ""  # for the mode `chat`


class NetworkConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One IRC network. Times are seconds."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,32}$")]
    host: Annotated[str, Meta(min_length=1, max_length=253)]
    port: Port = 6697
    tls: bool = True
    tls_ca_file: Path | None = None  # instead of the system's authorities
    client_certificate: Path | None = None  # PEM, with `client_key` or the key in the same file
    client_key: Path | None = None
    password: Annotated[str, Meta(max_length=300, pattern=r"^[^\r\n\x00]*$")] = ""  # the server's
    password_file: Path | None = None
    nick: str | None = None
    alternatives: list[str] | None = None
    sasl: SaslConfig | None = None
    # Sent to get the nick back, {nick} for its name: "NickServ REGAIN {nick}".
    regain: Annotated[str, Meta(max_length=200, pattern=r"^(\S+ [^\r\n\x00]+)?$")] = ""
    admins: list[str] = []  # services accounts
    channels: list[ChannelConfig] = []
    private: Mode | Literal["off"] = "wiki"  # how private messages are answered
    burst: Annotated[int, Meta(ge=1, le=100)] = 4  # lines at once, then …
    seconds_per_line: Annotated[float, Meta(ge=0, le=60)] = 2.0  # … one in this time
    silence_seconds: Seconds = 180.0  # then a PING, and after as much again the line counts as dead
    reconnect_first_seconds: Seconds = 2.0
    reconnect_most_seconds: Seconds = 300.0
    tend_seconds: Seconds = 30.0  # how often a lost nick or channel is asked for


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    networks: Annotated[list[NetworkConfig], Meta(min_length=1, max_length=32)]
    gateway: GatewayConfig = GatewayConfig()
    bot: BotConfig = BotConfig()
    replies: ReplyConfig = ReplyConfig()
    limits: LimitConfig = LimitConfig()


def secret(text: str, file: Path | None) -> str:
    """A password: as it is, or the first line of its file. Raises ConfigError."""
    if file is None:
        return text
    try:
        lines = read_at_most(file, _MOST_SECRET_BYTES).decode().splitlines()
    except OSError as error:
        raise ConfigError(f"the secret in {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the secret in {file} cannot be read: it is not UTF-8") from None
    if not lines or not lines[0].strip():
        raise ConfigError(f"the secret in {file} is empty")
    return lines[0].strip()


def api_key(config: GatewayConfig) -> str:
    """The gateway's key, "" for none. Raises ConfigError."""
    key = secret(os.environ.get("HEARTH_API_KEY", ""), config.key_file)
    if not key.isascii() or not key.isprintable() or " " in key:
        where = config.key_file or "HEARTH_API_KEY"
        raise ConfigError(f"{where} holds no API key: give it as `hearth key create` printed it")
    return key


def read_at_most(file: Path, most: int) -> bytes:
    """What the file holds. Raises ConfigError for a file of more than ``most`` bytes, OSError."""
    with file.open("rb") as opened:
        found = opened.read(most + 1)
    if len(found) > most:
        raise ConfigError(f"{file} has more than {most} bytes: is it the right file?")
    return found
