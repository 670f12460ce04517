"""Plain text of scripts (``10^(n+1)``, ``x_i``) and definitions. Shared by the readers of wikitext and of HTML."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case

# Noncharacters that stand around superscript and subscript until the line is complete.
RAISED, RAISED_END, LOWERED, LOWERED_END = "\ufdd4", "\ufdd5", "\ufdd6", "\ufdd7"
SCRIPTS = {"sup": (RAISED, RAISED_END), "sub": (LOWERED, LOWERED_END)}  # by HTML element
# Spaces that become one, also those that do not break.
SPACES = re.compile(r"[ \t\u00a0\u2009\u202f]+")

_MARKS = re.compile(f"[{RAISED}-{LOWERED_END}]")
# All marks of the readers: protect.py, infobox.py, lines.py and these.
_RESERVED = re.compile("[\ufdd0-\ufdd7]")
_ORDINAL = any_case(f"{RAISED}(st|nd|rd|th){RAISED_END}")
_INNERMOST = re.compile(
    f"{RAISED}([^{RAISED}-{LOWERED_END}]*){RAISED_END}|{LOWERED}([^{RAISED}-{LOWERED_END}]*){LOWERED_END}"
)
# Needs no brackets: a word or number with its sign, or what has brackets of its own.
_SIMPLE = re.compile(r"[-+−–]?[\w.,′'*∗∞\ufdd0\ufdd1]*|\([^()]*\)|\[[^\[\]]*\]")
_MOST_NESTED = 4
_TERM_ENDS = (".", ":", ";", "?", "!", "…")


def show_scripts(text: str) -> str:
    """Replace the marks by ``^`` and ``_``, with brackets around more than one word. Linear in the text's length."""
    if not _MARKS.search(text):
        return text
    text = _ORDINAL.sub(r"\1", text)
    for _ in range(_MOST_NESTED):
        shown = _INNERMOST.sub(_shown, text)
        if shown == text:
            break
        text = shown
    text = text.replace(RAISED, "^").replace(LOWERED, "_")  # never closed, or nested too deeply
    return _MARKS.sub("", text)


def without_marks(text: str) -> str:
    """Drop NUL, and replace the noncharacters that the readers use as marks: they have no meaning in a source."""
    return _RESERVED.sub("\ufffd", text.replace("\0", ""))


def defined(term: str, text: str) -> str:
    """A term, or an item that has begun with one, and what defines it: ``- term: text``.

    On a line of its own the definition would not say what it is about.
    """
    indent = term[: len(term) - len(term.lstrip())]
    if term.startswith(f"{indent}- "):
        return f"{term} {text}"
    return f"{indent}- {term.lstrip()}{' ' if term.endswith(_TERM_ENDS) else ': '}{text}"


def _shown(match: re.Match[str]) -> str:
    sign, content = ("^", match[1]) if match[1] is not None else ("_", match[2])
    content = content.strip()
    if not content:
        return ""
    return sign + (content if _SIMPLE.fullmatch(content) else f"({content})")
