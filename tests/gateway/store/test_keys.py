from __future__ import annotations

import pytest

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.store import keys
from gateway.store.db import Database


def test_a_key_is_known_by_its_token_only(database: Database) -> None:
    info, token = database.write_sync(lambda c: keys.create_key(c, "laptop", "admin"))
    assert token.startswith("hk_") and len(token) >= 46
    assert database.read_sync(lambda c: keys.verify_key(c, token)) == info
    assert (info.role, info.owner, info.last_used_at) == ("admin", f"key-{info.id}", None)
    for wrong in ("", "hk_", token[:-1], token + "x", token.swapcase(), info.id, "ключ", "\ud800"):
        assert database.read_sync(lambda c, wrong=wrong: keys.verify_key(c, wrong)) is None


def test_the_token_is_not_in_the_file(database: Database) -> None:
    _, token = database.write_sync(lambda c: keys.create_key(c, "laptop", "user"))
    database.close()
    assert token.removeprefix("hk_").encode() not in database.path.read_bytes()


def test_a_revoked_key_opens_nothing_but_still_counts(database: Database) -> None:
    assert not database.read_sync(keys.any_keys)
    first, token = database.write_sync(lambda c: keys.create_key(c, "a", "user"))
    second, other = database.write_sync(lambda c: keys.create_key(c, "b", "user"))
    revoked = database.write_sync(lambda c: keys.revoke_key(c, "a"))
    assert revoked.id == first.id and revoked.revoked_at is not None
    assert database.read_sync(lambda c: keys.verify_key(c, token)) is None
    assert database.read_sync(lambda c: keys.verify_key(c, other)) == second
    database.write_sync(lambda c: keys.revoke_key(c, second.id))
    assert database.read_sync(keys.any_keys), "revoking the last key must not open the server"
    assert [key.name for key in database.read_sync(keys.list_keys)] == ["a", "b"]
    with pytest.raises(NotFoundError, match="hearth key list"):
        database.write_sync(lambda c: keys.revoke_key(c, "a"))


def test_names_are_unique_among_active_keys(database: Database) -> None:
    database.write_sync(lambda c: keys.create_key(c, "bot", "user"))
    with pytest.raises(InvalidRequestError, match="exists"):
        database.write_sync(lambda c: keys.create_key(c, "bot", "user"))
    database.write_sync(lambda c: keys.revoke_key(c, "bot"))
    again, _ = database.write_sync(lambda c: keys.create_key(c, "bot", "user", owner="shared"))
    assert again.owner == "shared"


@pytest.mark.parametrize("name", ["", " x", "x" * 65, "a\nb"])
def test_bad_names_are_refused(database: Database, name: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        database.write_sync(lambda c: keys.create_key(c, name, "user"))
    assert caught.value.param == "name"


def test_bad_roles_are_refused(database: Database) -> None:
    with pytest.raises(InvalidRequestError, match="`root` is not a role"):
        database.write_sync(lambda c: keys.create_key(c, "x", "root"))  # type: ignore[arg-type]


def test_last_use_is_noted_at_most_once_a_minute(database: Database) -> None:
    info, token = database.write_sync(lambda c: keys.create_key(c, "x", "user"))
    assert keys.needs_touch(info)
    database.write_sync(lambda c: keys.touch_key(c, info))
    touched = database.read_sync(lambda c: keys.verify_key(c, token))
    assert touched is not None and touched.last_used_at is not None and not keys.needs_touch(touched)
