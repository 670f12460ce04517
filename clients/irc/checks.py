"""What a type cannot say about a configuration: names that must be names, and fields that need each other."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from clients.irc.config import Config, NetworkConfig
from clients.irc.wire import NICK, is_channel


def contradictions(config: Config) -> list[str]:
    """One sentence a problem, beginning with the field; none when the configuration can be used."""
    names = Counter(network.name for network in config.networks)
    problems = [f"networks: there are {n} of the name `{name}`" for name, n in names.items() if n > 1]
    problems += _nicks("bot", [config.bot.nick, *config.bot.alternatives])
    for network in config.networks:
        where = f"networks.{network.name}"
        problems += _nicks(where, [network.nick] if network.nick is not None else [])
        problems += _nicks(where, network.alternatives or [])
        problems += [*_channels(network, where), *_login(network, where), *_files(network, where)]
    return problems


def _nicks(where: str, nicks: list[str]) -> Iterator[str]:
    for nick in nicks:
        if not NICK.fullmatch(nick):
            yield f"{where}.nick: `{nick}` is no nick: 1 to 64 characters without blanks and !@,:*?$#&"


def _channels(network: NetworkConfig, where: str) -> Iterator[str]:
    for channel in network.channels:
        if not is_channel(channel.name):
            yield (
                f"{where}.channels: `{channel.name}` is no channel: it begins with one of #&+! and has "
                "no blank, comma or colon"
            )
    names = Counter(channel.name.casefold() for channel in network.channels)
    yield from (f"{where}.channels: `{name}` is there {n} times" for name, n in names.items() if n > 1)


def _login(network: NetworkConfig, where: str) -> Iterator[str]:
    sasl = network.sasl
    if sasl is not None and sasl.mechanism == "EXTERNAL":
        if not network.tls or network.client_certificate is None:
            yield f"{where}.sasl: EXTERNAL needs `tls` and a `client_certificate`"
        if sasl.password or sasl.password_file:
            yield f"{where}.sasl: EXTERNAL takes no password"
    elif sasl is not None:
        if not sasl.account or not (sasl.password or sasl.password_file):
            yield f"{where}.sasl: PLAIN needs `account`, and `password` or `password_file`"
        if not network.tls and not _loopback(network.host):
            yield f"{where}.sasl: without `tls` the password would be readable on its way; set tls = true"
    if network.client_certificate is not None and not network.tls:
        yield f"{where}.client_certificate: it needs `tls`"
    if network.client_key is not None and network.client_certificate is None:
        yield f"{where}.client_key: it needs `client_certificate`"


def _files(network: NetworkConfig, where: str) -> Iterator[str]:
    for field in ("tls_ca_file", "client_certificate", "client_key", "password_file"):
        path: Path | None = getattr(network, field)
        try:
            there = path is None or path.is_file()
        except OSError as error:
            yield f"{where}.{field}: {path} cannot be read: {error.strerror}"
        else:
            if not there:
                yield f"{where}.{field}: there is no file {path}"
    for name, text, file in (
        ("password", network.password, network.password_file),
        *([("sasl", network.sasl.password, network.sasl.password_file)] if network.sasl else []),
    ):
        if text and file is not None:
            yield f"{where}.{name}: give the password or its file, not both"


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
