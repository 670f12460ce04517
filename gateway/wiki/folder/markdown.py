"""Markdown as plain text with sections, in the form that the HTML reader gives."""

from __future__ import annotations

import re

from gateway.wiki.source import Section

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_UNDERLINE = re.compile(r"(=+|-{2,})[ \t]*")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,}).*")
_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()]*\)")
_LINK = re.compile(r"\[([^\[\]]+)\](?:\([^()]*\)|\[[^\[\]]*\])")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1|(?<![\w*])([*_])(?=\S)([^*_]+?)(?<=\S)\3(?![\w*])")
_CODE = re.compile(r"`([^`]+)`")
_BULLET = re.compile(r"\A([ \t]*)[*+][ \t]+")
_FRONT = re.compile(r"\A---\r?\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)


def extract_markdown(text: str) -> list[Section]:
    """Sections in page order; the first is the lead, which may be empty. Linear in the length."""
    done: list[Section] = []
    head, lines, fence = ("", 1), [""], ""

    def end_section() -> None:
        heading, level = head
        done.append(Section(heading, _anchor(heading), level, "\n".join(lines).strip("\n")))
        lines.clear()

    for line in _FRONT.sub("", text, count=1).splitlines():
        opened = _FENCE.fullmatch(line)
        if fence:
            if opened and opened[1].startswith(fence):
                fence = ""
            else:
                lines.append(line)
        elif opened:
            fence = opened[1]
        elif heading := _HEADING.fullmatch(line):
            end_section()
            head = _inline(heading[2]), len(heading[1])
        elif _UNDERLINE.fullmatch(line) and lines and lines[-1].strip() and "|" not in lines[-1]:
            title = lines.pop()
            end_section()
            head = title.strip(), 1 if line[0] == "=" else 2
        elif not ("|" in line and _RULE.fullmatch(line)):
            lines.append(_row(line) if line.lstrip().startswith("|") else _inline(line))
    end_section()
    return done


def _row(line: str) -> str:
    return " | ".join(_inline(cell.strip()) for cell in line.strip().strip("|").split("|"))


def _inline(line: str) -> str:
    line = _LINK.sub(r"\1", _IMAGE.sub("", _BULLET.sub(r"\1- ", line, count=1)))
    line = _EMPHASIS.sub(lambda match: match[2] or match[4], line)
    return _CODE.sub(r"\1", line).rstrip()


def _anchor(heading: str) -> str:
    """The fragment that GitHub and most generators give a heading."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
