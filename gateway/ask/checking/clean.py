"""Removes invisible characters, control tokens, tool calls and foreign links from answers.

Anybody can write a page, and a model may repeat what it reads. An answer must not steer the program that shows it:
a chat client, a terminal, another model. These functions remove text or spell it out; they add only :data:`REMOVED`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection
from urllib.parse import quote

from gateway.base.patterns import any_case
from gateway.base.visible import visible

REMOVED = "(link removed)"

# Joiners between non-ASCII characters stay: scripts and emoji need them.
_JOINER = re.compile("(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f\u200c\u200d])")

# Names that chat templates use in angle brackets; `<|…|>`, `<|…>` and `<…|>` match with any name.
_NAMES = (
    "(?:start|end)_of_(?:turn|image|audio|text)|(?:start|end)_function_[a-z]+|(?:image|audio)_soft_token|"
    "tool_(?:calls?|code|responses?|results?|outputs?)|tools|functions?(?:_calls?|_results?|_responses?)?|"
    "invoke|parameter|arg_(?:key|value)|think(?:ing)?|bos|eos|pad|unk|mask|sep|cls|s|escape|"
    "unused[0-9]+|endoftext|im_(?:start|end)|0x[0-9a-f]{2}"
)
_TOKEN = any_case(
    rf"</?(?:[a-z]+:)?(?:{_NAMES})(?:[=\s][^<>]*)?>"
    r"|<[|｜]/?(?=[^<>]*\w)[\w▁:./ -]{1,64}[|｜]?>|<(?=[^<>]*\w)[\w▁:./-]{1,64}[|｜]>"
    r"|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|"
    r"IMG|IMG_BREAK|IMG_END|PREFIX|SUFFIX|MIDDLE|THINK|gMASK)\]"
)
# A call without its tokens: JSON with arguments, or Gemma's form.
_CALL = re.compile(
    r"""[\[{]*\s*["'](?:name|function|tool|type)["']\s*:.*|["'](?:arguments|parameters)["']\s*:.*"""
    r"|\bcall:[\w.]+\s*\{.*",
    re.DOTALL,
)
_CALL_KEYS = re.compile(r"""["'](?:arguments|parameters)["']\s*:""")
_FENCE_OF_CALL = re.compile(r"(?<=```)tool_\w+")
_ACTIVE = any_case(
    r"</?(?:a|area|audio|base|body|button|embed|form|frame|html|iframe|img|input|link|math|meta|object|script|"
    r"source|style|svg|video)(?=[\s/>]|\Z)[^<>]*>?"
)

# Domains that make a name with a path a link even without a scheme, unlike "node.js/express".
_DOMAINS = (
    "com|net|org|info|biz|io|dev|app|ai|xyz|top|site|online|shop|club|live|me|co|tv|cc|ly|gg|to|ru|cn|su|tk|pw|eu|"
    "de|uk|fr|nl|onion|example|test"
)
_END = r"""[^\s<>"'`)\]}|\x01]*[^\s<>"'`)\]}|.,;:!?\x01]"""
_LINK = any_case(
    rf"[a-z][a-z0-9+.-]{{1,20}}:[/\\]{{2}}{_END}"
    rf"|(?:https?|ftp)[:;]{_END}"
    r"|(?<!\w)(?:javascript|vbscript|data|mailto|tel|sms|magnet|xmpp|ircs?|sips?|file|blob|about|intent|ssh)"
    rf":{_END}"
    rf"|(?<![:\w/\\])[/\\]{{2}}[\w-]+(?:\.[\w-]+)+(?:[/:?#]{_END})?"
    rf"|(?<![\w.-])www\.{_END}"
    rf"|(?<![\w.-])(?:[\w-]+\.)+(?:{_DOMAINS})(?::[0-9]+)?/{_END}"
)
_MARKDOWN = re.compile(r"!?\[([^\[\]\n]*)\](?:\(\s*<?([^()\s<>]*[:/.#][^()\s<>]*)>?[^()\n]*\))")
_DIGITS = re.compile(r"[0-9, ]+")
_KEPT = re.compile("\x00([0-9]+)\x00")
_PLACE = re.compile("(\x00[0-9]+\x00|\x01)")
# Placeholders for an allowed address and for a removed link; cleaned text has no such characters.
_OWN, _GONE = "\x00{}\x00", "\x01"


def without_markup(text: str, code: bool = False) -> str:
    """Remove control tokens, tool calls and, outside ``code``, active HTML from :func:`visible` text."""
    text = _JOINER.sub("", text)
    while (less := _without_markup(text, code)) != text:  # a removal can form another token
        text = less
    return text


def _without_markup(text: str, code: bool) -> str:
    text = _FENCE_OF_CALL.sub("", _TOKEN.sub("", text))
    if _CALL_KEYS.search(text) or "call:" in text:
        text = _CALL.sub("", text)
    return text if code else _ACTIVE.sub("", text)


def without_links(text: str, own: Collection[str], code: bool = False) -> str:
    """Remove markup, and all links except addresses in ``own`` with any fragment."""
    while (less := without_markup(_without_links(text, own), code)) != text:  # a link may hide half a token
        text = less
    return text


def _without_links(text: str, own: Collection[str]) -> str:
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return _OWN.format(len(kept) - 1)

    for address in sorted(own, key=len, reverse=True):
        if address:
            text = re.sub(re.escape(address) + r"(?:#[\w.%~:-]*\w)?(?![\w/@%?&=+~$\\#-])", keep, text)
    text = _LINK.sub(_GONE, _MARKDOWN.sub(_bare, text))
    folded = _folded(text)
    if _LINK.search(folded):  # written in entities, or in letters that only look like these
        text = _LINK.sub(_GONE, _MARKDOWN.sub(_bare, folded))
    return _KEPT.sub(lambda match: kept[int(match[1])], text).replace(_GONE, REMOVED)


def _folded(text: str) -> str:
    """Spell out entities and look-alike letters; placeholders stay."""
    folded = unicodedata.normalize("NFKC", html.unescape(text))
    pieces = _PLACE.split(folded)  # text, placeholder, text, …
    pieces[::2] = [without_markup(visible(piece)) for piece in pieces[::2]]
    return "".join(pieces)


def _bare(match: re.Match[str]) -> str:
    """Return the text of a Markdown link; the number of a citation stays one."""
    if match[2].startswith("\x00"):
        return match[0]
    return f"[{match[1]}]" if _DIGITS.fullmatch(match[1]) else match[1]


def label(text: str) -> str:
    """Reduce a title or heading to one line of plain text."""
    return " ".join(without_links(without_markup(visible(text)), ()).split())


def address(url: str) -> str:
    """Percent-encode all characters that a URL may not contain."""
    return quote(url, safe="%/:?#[]@!$&'()*+,;=~")
