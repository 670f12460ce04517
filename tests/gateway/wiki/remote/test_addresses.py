from __future__ import annotations

import pytest

from gateway.wiki.remote.addresses import Rule
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


def find(monkeypatch: pytest.MonkeyPatch, host: str, found: list[str], *, private: bool) -> list[str]:
    rule = Rule(host, private=private)
    monkeypatch.setattr(rule, "_resolve", lambda: found)
    return rule.addresses()


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("address", [*PUBLIC, *PRIVATE, *NEVER])
def test_where_a_name_may_lead(monkeypatch: pytest.MonkeyPatch, address: str, private: bool) -> None:
    if address in PUBLIC or (private and address in PRIVATE):
        assert find(monkeypatch, "wiki.test", [address], private=private) == [address]
    else:
        with pytest.raises(WikiReplyError, match="not public"):
            find(monkeypatch, "wiki.test", [address], private=private)


def test_only_the_allowed_ones_of_several_addresses_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(monkeypatch, "wiki.test", ["10.0.0.1", "8.8.8.8", "::1"], private=False) == ["8.8.8.8"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "wiki.localhost"])
def test_localhost_is_loopback_and_nothing_else(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    assert find(monkeypatch, host, ["127.0.0.1", "::1"], private=False) == ["127.0.0.1", "::1"]
    with pytest.raises(WikiReplyError):
        find(monkeypatch, host, ["8.8.8.8"], private=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "[::1]", "8.8.8.8"])
def test_a_configured_address_is_meant(address: str) -> None:
    rule = Rule(address, private=False)
    assert rule.literal is not None
    assert rule.addresses() == [address.strip("[]")]
