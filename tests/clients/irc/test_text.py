"""Text and lines: whatever goes in, one harmless line comes out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.irc.protocol.wire import (
    CONTINUED,
    LINE_BYTES,
    Mask,
    UnsafeLineError,
    checked,
    clean,
    ctcp_reply,
    is_target,
    message,
    room,
    split,
    with_link,
)

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\r\n\0\x01\x02\x03\x04\x0f\x16\x1f\x7f\x85 \u2028\u202e\u200b\ufeff\ud800:!\u0301👩\u200d"
        ),
    ),
    max_size=600,
)
MASKS = st.builds(
    Mask, st.text("ab[é", min_size=1, max_size=40), st.text("u", max_size=20), st.text("h", max_size=90)
)


def forbidden(character: str) -> bool:
    return (
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp", "Cn", "Co"}
        or character in "\u202e\u200b\ufeff"
    )


@given(HOSTILE)
def test_clean_text_is_one_line_of_plain_characters(text: str) -> None:
    plain = clean(text)
    assert not any(forbidden(character) for character in plain)
    assert plain == " ".join(plain.split()) and clean(plain) == plain
    plain.encode()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x0304,12red\x03 and \x02bold\x02", "red and bold"),
        ("\x03\x031 2", "2"),
        ("\x04ff0000red", "red"),
        ("one\r\nQUIT :two\0three", "one QUIT :twothree"),
        ("a\x1db\x1ec\x1fd", "abcd"),
        ("tab\there\u2028there", "tab here there"),
        ("\x01ACTION waves\x01", "ACTION waves"),
        ("\u202eevil\u202c", "evil"),
        ("நி 👩\u200d🔬 é", "நி 👩\u200d🔬 é"),
    ],
)
def test_clean_examples(text: str, plain: str) -> None:
    assert clean(text) == plain


@given(HOSTILE.map(clean), st.integers(40, 450), st.integers(60, 450), st.integers(1, 10))
def test_pieces_fit_and_lose_nothing(text: str, characters: int, space: int, lines: int) -> None:
    pieces, rest = split(text, characters=characters, room=space, lines=lines)
    assert len(pieces) <= lines
    assert all(len(piece) <= characters and len(piece.encode()) <= space for piece in pieces)
    assert all(piece.endswith(CONTINUED) for piece in (pieces if rest else pieces[:-1]))
    told = [piece.removesuffix(CONTINUED) if rest or piece is not pieces[-1] else piece for piece in pieces]
    assert "".join([*told, rest]).replace(" ", "") == text.replace(" ", "")


def test_cuts_are_at_blanks_and_never_inside_a_character() -> None:
    pieces, rest = split("word " * 200 + "end", characters=60, room=400, lines=3)
    assert len(pieces) == 3 and rest and all(piece.endswith("word ...") for piece in pieces)
    pieces, _ = split("e\u0301" * 300, characters=51, room=400, lines=4)
    assert all(piece.removesuffix(CONTINUED).endswith("\u0301") for piece in pieces)
    pieces, _ = split("👩\u200d🔬" * 100, characters=50, room=70, lines=4)
    assert all(piece.removesuffix(CONTINUED).endswith("🔬") for piece in pieces)


def test_a_link_is_shown_whole_or_not_at_all() -> None:
    link = "https://wiki.example/" + "x" * 40
    assert with_link("short", link, characters=100, room=400, lines=3) == ([f"short {link}"], "")
    pieces, rest = with_link("word " * 100, link, characters=100, room=400, lines=3)
    assert (len(pieces), pieces[-1], rest != "") == (3, link, True)
    pieces, _ = with_link("word " * 100, link, characters=100, room=400, lines=1)
    assert link not in pieces[0]
    pieces, _ = with_link("word", "https://wiki.example/" + "y" * 500, characters=100, room=400, lines=3)
    assert pieces == ["word"]
    # It would just fit behind the text, but be torn there.
    pieces, rest = with_link("a" * 60, link, characters=90, room=400, lines=2)
    assert (pieces, rest) == (["a" * 60 + CONTINUED, link], "") or link in pieces[-1].split(" ")


@given(
    HOSTILE,
    MASKS,
    st.sampled_from(["#test", "bob", "é", "#" + "c" * 63]),
)
def test_a_message_is_one_line_of_at_most_512_bytes(text: str, mask: Mask, target: str) -> None:
    try:
        line = message(mask, target, text)
    except UnsafeLineError:
        assert not clean(text) or room(mask, target) < 4
        return
    head = f"PRIVMSG {target} :".encode()
    assert line.startswith(head) and line.endswith(b"\r\n")
    body = line[len(head) : -2]
    assert not any(byte < 32 or byte == 127 for byte in body)
    assert clean(text).startswith(body.decode())
    shown = f":{mask.nick}!{mask.user}@{mask.host} ".encode()
    assert len(shown + line) <= LINE_BYTES


@given(HOSTILE, MASKS)
def test_a_ctcp_reply_is_one_line_of_at_most_512_bytes(text: str, mask: Mask) -> None:
    line = ctcp_reply(mask, "bob", "PING", text)
    assert line.startswith(b"NOTICE bob :\x01PING") and line.endswith(b"\x01\r\n")
    assert not any(byte < 32 or byte == 127 for byte in line[len(b"NOTICE bob :\x01") : -3])
    assert len(f":{mask.nick}!{mask.user}@{mask.host} ".encode() + line) <= LINE_BYTES


@pytest.mark.parametrize(
    "target",
    [
        "",
        "#",
        "a b",
        "a,b",
        "#a,#b",
        "bob\r\nQUIT",
        "@#test",
        "$*",
        "*.net",
        ":x",
        "-x",
        "#a\x07",
        "b!u@h",
        "x" * 99,
    ],
)
def test_odd_targets_get_nothing(target: str) -> None:
    assert not is_target(target)
    with pytest.raises(UnsafeLineError):
        message(Mask("hearth"), target, "hello")


@pytest.mark.parametrize(
    "line", [b"A\nB\r\n", b"A\rB\r\n", b"A\0\r\n", b"A\n", b"A", b"", b"A\r\n\r\n", b"x" * 511 + b"\r\n"]
)
def test_lines_that_are_none_are_refused(line: bytes) -> None:
    with pytest.raises(UnsafeLineError):
        checked(line)


def test_tags_have_their_own_allowance() -> None:
    assert checked(b"@+typing=active TAGMSG #" + b"x" * 480 + b"\r\n")
