from __future__ import annotations

import pytest

from gateway.wiki.remote.addresses import Addresses
from gateway.wiki.remote.trouble import WikiReplyError

PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
PRIVATE = [
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "fd00::1",
    "127.0.0.1",
    "::1",
    "::ffff:10.0.0.1",
]
NEVER = [
    "169.254.169.254",
    "fe80::1",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "240.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
]


async def find(monkeypatch: pytest.MonkeyPatch, host: str, found: list[str], *, private: bool) -> list[str]:
    addresses = Addresses(host, private=private)

    async def resolve() -> list[str]:
        return found

    monkeypatch.setattr(addresses, "_resolve", resolve)
    return await addresses.find()


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("address", [*PUBLIC, *PRIVATE, *NEVER])
async def test_where_a_name_may_lead(monkeypatch: pytest.MonkeyPatch, address: str, private: bool) -> None:
    if address in PUBLIC or (private and address in PRIVATE):
        assert await find(monkeypatch, "wiki.test", [address], private=private) == [address]
    else:
        with pytest.raises(WikiReplyError, match="not public"):
            await find(monkeypatch, "wiki.test", [address], private=private)


async def test_only_the_allowed_ones_of_several_addresses_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await find(monkeypatch, "wiki.test", ["10.0.0.1", "8.8.8.8", "::1"], private=False) == ["8.8.8.8"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "wiki.localhost"])
async def test_localhost_is_loopback_and_nothing_else(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    assert await find(monkeypatch, host, ["127.0.0.1", "::1"], private=False) == ["127.0.0.1", "::1"]
    with pytest.raises(WikiReplyError):
        await find(monkeypatch, host, ["8.8.8.8"], private=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "[::1]", "8.8.8.8"])
async def test_a_configured_address_is_meant(address: str) -> None:
    addresses = Addresses(address, private=False)
    assert not addresses.is_name
    assert await addresses.find() == [address.strip("[]")]
