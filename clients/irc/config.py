"""The configuration: one TOML file. Unknown keys, invalid values and contradictions are refused by name."""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct, structs

from clients.irc.protocol.wire import NICK, is_channel

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=10_000)]
Port = Annotated[int, Meta(ge=1, le=65_535)]
Mode = Literal["wiki", "chat"]
RememberedLines = Literal["addressed", "all", "off"]

_MOST_BYTES = 1024 * 1024
_MOST_SECRET_BYTES = 64 * 1024
# msgspec's messages.
_NAMED = re.compile(r"Object (missing required|contains unknown) field `(.*)`$", re.DOTALL)
_ENUM = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_WRONG = re.compile(r"Expected `([^`]+)`(?: (of length )?([<>]=?) (\S+))?(?:, got `([^`]+)`)?")
_NOUNS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "null": "absent",
    "array": "a list", "object": "a table",
}  # fmt: skip
# Fields with a pattern.
_FORMS = {
    "account": "a name without blanks",
    "key": "a text without blanks and commas that does not begin with a colon",
    "name": "1 to 32 of the characters a-z, 0-9 and -",
    "password": "one line",
    "regain": "a nick and a message, such as `NickServ REGAIN {nick}`",
    "url": "an address such as http://127.0.0.1:8420",
    "username": "1 to 10 of the characters A-Z, a-z, 0-9, _ and -",
}
_LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


class ConfigError(Exception):
    """The file cannot be used; the message names the field, its range and the remedy."""


class GatewayConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where questions go. Without ``key_file`` the key is in HEARTH_API_KEY, or none is needed."""

    url: Annotated[str, Meta(pattern=r"^https?://[^/\s]+/?$")] = "http://127.0.0.1:8420"
    key_file: Path | None = None
    style: str = "irc"  # of answers from the wiki: a prompt `answer_STYLE` of the gateway
    timeout_seconds: Seconds = 330.0  # slightly above the gateway's own deadline
    max_concurrent: Count = 4  # questions at once, over all networks
    max_waiting: Count = 32  # more are refused
    reply_tokens: Count = 200  # of replies in the mode `chat`


class BotConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Names, and which lines are for the bot. A network may have its own nicks."""

    nick: str = "hearth"
    alternatives: list[str] = []
    username: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,10}$")] = "hearth"
    realname: Annotated[str, Meta(min_length=1, max_length=120)] = "hearth, answers from a wiki"
    prefix: Annotated[str, Meta(max_length=16)] = ""  # a line that begins with it is a question, too
    command_mark: Annotated[str, Meta(min_length=1, max_length=4)] = "!"
    state_dir: Path = Path("~/.local/state/hearth-irc")


class ReplyConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The form of replies, and what users see while they wait."""

    lines: Annotated[int, Meta(ge=1, le=10)] = 3
    characters: Annotated[int, Meta(ge=40, le=450)] = 350  # of a line
    foreign_links: bool = False  # keep links that are no source of the answer
    typing: bool = True  # the typing indicator, on servers that have it
    patience_seconds: Seconds = 10.0  # then one line gives the place in the queue
    keep_seconds: Seconds = 120.0  # how long a reply waits for a lost connection to come back


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
    """``memory`` says which lines become part of the channel's conversation: those to the bot, all, or none."""

    name: str
    key: Annotated[str, Meta(max_length=64, pattern=r"^[^\s,:\x00][^\s,\x00]*$|^$")] = ""
    mode: Mode = "wiki"
    memory: RememberedLines = "addressed"
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
    # Sent to get the nick back, with {nick} for its name: "NickServ REGAIN {nick}".
    regain: Annotated[str, Meta(max_length=200, pattern=r"^(\S+ [^\r\n\x00]+)?$")] = ""
    admins: list[str] = []  # services accounts
    # Users who may run tasks, in private and by their services account. Tasks read the server's registered projects.
    tasks: Literal["off", "admins", "accounts"] = "off"
    channels: list[ChannelConfig] = []
    private: Mode | Literal["off"] = "wiki"  # how private messages are answered
    burst: Annotated[int, Meta(ge=1, le=100)] = 4  # lines at once, then …
    seconds_per_line: Annotated[float, Meta(ge=0, le=60)] = 2.0  # … one in this time
    silence_seconds: Seconds = 180.0  # then a PING; after as much again the connection counts as dead
    reconnect_first_seconds: Seconds = 2.0
    reconnect_most_seconds: Seconds = 300.0
    tend_seconds: Seconds = 30.0  # between two requests for a lost nick or channel


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The configuration file."""

    networks: Annotated[list[NetworkConfig], Meta(min_length=1, max_length=32)]
    gateway: GatewayConfig = GatewayConfig()
    bot: BotConfig = BotConfig()
    replies: ReplyConfig = ReplyConfig()
    limits: LimitConfig = LimitConfig()


def load(path: Path) -> Config:
    """Read and check the file. Raises ConfigError."""
    try:
        tables = tomllib.loads(_read_at_most(path, _MOST_BYTES).decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    try:
        return parse(tables)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(tables: object) -> Config:
    """Check the tables of a file. Raises ConfigError."""
    try:
        config = msgspec.convert(tables, Config, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise ConfigError(_plain(str(error))) from None
    if problems := "; ".join(_contradictions(config)):
        raise ConfigError(problems)
    return config


def _plain(problem: str) -> str:
    """Put msgspec's message into plain words, with the field's path in front."""
    text, _, path = problem.partition(" - at `$")
    path = path.strip(".`")
    if named := _NAMED.match(text):
        path = f"{path}.{named[2]}" if path else named[2]
        text = "is missing" if named[1] == "missing required" else "there is no such setting"
    elif match := _ENUM.match(text):
        text = f"must be {_choices(path.rpartition('.')[2])}, not {match[1]}"
    elif wrong := _WRONG.fullmatch(text):
        kinds, length, sign, limit, given = wrong.groups()
        text = "must be " + " or ".join(_NOUNS.get(each, each) for each in kinds.split(" | "))
        text += f" of {_LIMITS[sign]} {limit}" if sign else ""
        unit = "character" if kinds == "str" else "element"
        text += f" {unit}{'' if limit == '1' else 's'}" if length else ""
        text += f", not {'a fraction' if given == 'float' else _NOUNS.get(given, given)}" if given else ""
    elif "matching regex" in text:
        text = f"must be {_FORMS[path.rpartition('.')[2]]}"
    return f"{path}: {text}" if path else text


def _choices(field: str) -> str:
    kinds = (ChannelConfig, NetworkConfig, SaslConfig)
    types = [each.type for kind in kinds for each in structs.fields(kind) if each.name == field]
    alternatives = [
        each for kind in types for each in get_args(kind)
    ]  # values, or again types that have some
    values = [value for each in alternatives for value in get_args(each) or (each,)]
    return " or ".join(f"`{value}`" for value in values)


def secret(text: str, file: Path | None) -> str:
    """Return a password: ``text``, or the first line of its file. Raises ConfigError."""
    if file is None:
        return text
    try:
        lines = _read_at_most(file, _MOST_SECRET_BYTES).decode().splitlines()
    except OSError as error:
        raise ConfigError(f"the secret in {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the secret in {file} cannot be read: it is not UTF-8") from None
    if not lines or not lines[0].strip():
        raise ConfigError(f"the secret in {file} is empty")
    return lines[0].strip()


def api_key(config: GatewayConfig) -> str:
    """Return the gateway's key, "" for none. Raises ConfigError."""
    key = secret(os.environ.get("HEARTH_API_KEY", ""), config.key_file)
    if not key.isascii() or not key.isprintable() or " " in key:
        where = config.key_file or "HEARTH_API_KEY"
        raise ConfigError(f"{where} does not hold an API key: give it as `hearth key create` printed it")
    return key


def _read_at_most(file: Path, most: int) -> bytes:
    """Return the file's content. Raises OSError, and ConfigError for a file of more than ``most`` bytes."""
    with file.open("rb") as opened:
        found = opened.read(most + 1)
    if len(found) > most:
        raise ConfigError(f"{file} has more than {most} bytes: is it the right file?")
    return found


def _path(kind: type, value: object) -> Path:
    """Convert a path, which may begin with a variable such as systemd's `$CREDENTIALS_DIRECTORY`."""
    if kind is not Path or not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("Expected a path as text")
    first, slash, rest = value.partition("/")
    if first.startswith("$"):
        folder = os.environ.get(first[1:], "")
        if not folder:
            raise ValueError(f"`{first}` is not set. A service manager sets it; elsewhere write the path")
        return Path(folder + slash + rest)
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ValueError(f"`{first}` is nobody's home directory on this machine") from None


def _contradictions(config: Config) -> Iterator[str]:
    """Yield problems that types cannot express: invalid names, and fields that need each other."""
    names = Counter(network.name for network in config.networks)
    yield from (f"networks: there are {n} of the name `{name}`" for name, n in names.items() if n > 1)
    yield from _bad_nicks("bot", [config.bot.nick, *config.bot.alternatives])
    for network in config.networks:
        where = f"networks.{network.name}"
        own_nick = [] if network.nick is None else [network.nick]
        yield from _bad_nicks(where, [*own_nick, *(network.alternatives or [])])
        yield from _bad_channels(network, where)
        yield from _bad_login(network, where)
        yield from _bad_files(network, where)


def _bad_nicks(where: str, nicks: list[str]) -> Iterator[str]:
    for nick in nicks:
        if not NICK.fullmatch(nick):
            yield f"{where}.nick: `{nick}` is not a nick: use 1 to 64 characters without blanks and !@,:*?$#&"


def _bad_channels(network: NetworkConfig, where: str) -> Iterator[str]:
    for channel in network.channels:
        if not is_channel(channel.name):
            yield (
                f"{where}.channels: `{channel.name}` is not a channel: it begins with one of #&+! and has "
                "no blank, comma or colon"
            )
    names = Counter(channel.name.casefold() for channel in network.channels)
    yield from (f"{where}.channels: `{name}` is there {n} times" for name, n in names.items() if n > 1)


def _bad_login(network: NetworkConfig, where: str) -> Iterator[str]:
    sasl = network.sasl
    if sasl is not None and sasl.mechanism == "EXTERNAL":
        if not network.tls or network.client_certificate is None:
            yield f"{where}.sasl: EXTERNAL needs `tls` and a `client_certificate`"
        if sasl.password or sasl.password_file:
            yield f"{where}.sasl: EXTERNAL takes no password"
    elif sasl is not None:
        if not sasl.account or not (sasl.password or sasl.password_file):
            yield f"{where}.sasl: PLAIN needs `account`, and `password` or `password_file`"
        if not network.tls and not _is_loopback(network.host):
            yield f"{where}.sasl: without `tls` the password would be readable on its way; set tls = true"
    if network.client_certificate is not None and not network.tls:
        yield f"{where}.client_certificate: it needs `tls`"
    if network.client_key is not None and network.client_certificate is None:
        yield f"{where}.client_key: it needs `client_certificate`"


def _bad_files(network: NetworkConfig, where: str) -> Iterator[str]:
    for field in ("tls_ca_file", "client_certificate", "client_key", "password_file"):
        path: Path | None = getattr(network, field)
        try:
            there = path is None or path.is_file()
        except OSError as error:
            yield f"{where}.{field}: {path} cannot be read: {error.strerror}"
        else:
            if not there:
                yield f"{where}.{field}: there is no file {path}"
    for name, table in (("password", network), ("sasl", network.sasl)):
        if table is not None and table.password and table.password_file is not None:
            yield f"{where}.{name}: give the password or its file, not both"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
