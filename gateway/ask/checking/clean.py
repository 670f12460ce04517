"""What a page may not bring into an answer: invisible characters, control tokens, tool calls, foreign links.

Pages are written by anybody, and a model may repeat what it reads. Whoever shows an answer (a chat client, a
terminal, another model) must not be steered by it. Everything here takes away or writes out; nothing is added
but :data:`REMOVED`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection
from urllib.parse import quote

from gateway.base.visible import visible

REMOVED = "(link removed)"

# Joiners stay where scripts need them.
_JOINER = re.compile("(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f\u200c\u200d])")

# Names in angle brackets that chat templates use; `<|…|>`, `<|…>` and `<…|>` with any name.
_NAMES = (
    "(?:start|end)_of_(?:turn|image|audio|text)|(?:start|end)_function_[a-z]+|(?:image|audio)_soft_token|"
    "tool_(?:calls?|code|responses?|results?|outputs?)|tools|functions?(?:_calls?|_results?|_responses?)?|"
    "invoke|parameter|arg_(?:key|value)|think(?:ing)?|bos|eos|pad|unk|mask|sep|cls|s|escape|"
    "unused[0-9]+|endoftext|im_(?:start|end)|0x[0-9a-f]{2}"
)
_TOKEN = re.compile(
    rf"</?(?:[a-z]+:)?(?:{_NAMES})(?:[=\s][^<>]*)?>"
    r"|<[|｜]/?(?=[^<>]*\w)[\w▁:./ -]{1,64}[|｜]?>|<(?=[^<>]*\w)[\w▁:./-]{1,64}[|｜]>"
    r"|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|"
    r"IMG|IMG_BREAK|IMG_END|PREFIX|SUFFIX|MIDDLE|THINK|gMASK)\]",
    re.IGNORECASE,
)
# A call without its tokens: JSON with its arguments, or the form of Gemma.
_CALL = re.compile(
    r"""[\[{]*\s*["'](?:name|function|tool|type)["']\s*:.*|["'](?:arguments|parameters)["']\s*:.*"""
    r"|\bcall:[\w.]+\s*\{.*",
    re.DOTALL,
)
_CALL_KEYS = re.compile(r"""["'](?:arguments|parameters)["']\s*:""")
_FENCE_OF_CALL = re.compile(r"(?<=```)tool_\w+")
_ACTIVE = re.compile(
    r"</?(?:a|area|audio|base|body|button|embed|form|frame|html|iframe|img|input|link|math|meta|object|script|"
    r"source|style|svg|video)(?=[\s/>]|\Z)[^<>]*>?",
    re.IGNORECASE,
)

# Where a name with a path is a link even without a scheme; "node.js/express" is none.
_DOMAINS = (
    "com|net|org|info|biz|io|dev|app|ai|xyz|top|site|online|shop|club|live|me|co|tv|cc|ly|gg|to|ru|cn|su|tk|pw|eu|"
    "de|uk|fr|nl|onion|example|test"
)
_END = r"""[^\s<>"'`)\]}|\x01]*[^\s<>"'`)\]}|.,;:!?\x01]"""
_LINK = re.compile(
    rf"[a-z][a-z0-9+.-]{{1,20}}:[/\\]{{2}}{_END}"
    rf"|(?:https?|ftp)[:;]{_END}"
    r"|(?<!\w)(?:javascript|vbscript|data|mailto|tel|sms|magnet|xmpp|ircs?|sips?|file|blob|about|intent|ssh)"
    rf":{_END}"
    rf"|(?<![:\w/\\])[/\\]{{2}}[\w-]+(?:\.[\w-]+)+(?:[/:?#]{_END})?"
    rf"|(?<![\w.-])www\.{_END}"
    rf"|(?<![\w.-])(?:[\w-]+\.)+(?:{_DOMAINS})(?::[0-9]+)?/{_END}",
    re.IGNORECASE,
)
_MARKDOWN = re.compile(r"!?\[([^\[\]\n]*)\](?:\(\s*<?([^()\s<>]*[:/.#][^()\s<>]*)>?[^()\n]*\))")
_DIGITS = re.compile(r"[0-9, ]+")
_KEPT = re.compile("\x00([0-9]+)\x00")
_PLACE = re.compile("(\x00[0-9]+\x00|\x01)")
# What stand for an allowed address and for a link that is gone; cleaned text has no such characters.
_OWN, _GONE = "\x00{}\x00", "\x01"


def without_markup(text: str, code: bool = False) -> str:
    """A sentence or line of :func:`visible` text without control tokens, calls of tools, and active HTML.

    HTML stays in ``code``.
    """
    text = _JOINER.sub("", text)
    while (less := _without_markup(text, code)) != text:  # what was around one may now be another
        text = less
    return text


def _without_markup(text: str, code: bool) -> str:
    text = _FENCE_OF_CALL.sub("", _TOKEN.sub("", text))
    if _CALL_KEYS.search(text) or "call:" in text:
        text = _CALL.sub("", text)
    return text if code else _ACTIVE.sub("", text)


def without_links(text: str, own: Collection[str], code: bool = False) -> str:
    """A sentence or line whose only links are addresses in ``own``, with any fragment; and no markup either."""
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
    """With entities and look-alikes written out; what stands for an own address stays."""
    folded = unicodedata.normalize("NFKC", html.unescape(text))
    pieces = _PLACE.split(folded)  # text, what stands for something, text, ...
    pieces[::2] = [without_markup(visible(piece)) for piece in pieces[::2]]
    return "".join(pieces)


def _bare(match: re.Match[str]) -> str:
    """The text of a Markdown link; a citation's number stays one."""
    if match[2].startswith("\x00"):
        return match[0]
    return f"[{match[1]}]" if _DIGITS.fullmatch(match[1]) else match[1]


def label(text: str) -> str:
    """A title or heading as one line that is nothing but text."""
    return " ".join(without_links(without_markup(visible(text)), ()).split())


def address(url: str) -> str:
    """An address in the characters that addresses have, everything else percent-encoded."""
    return quote(url, safe="%/:?#[]@!$&'()*+,;=~")
