"""The sample wiki and further test pages as a MediaWiki export."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote
from xml.sax.saxutils import escape

_KEYS = (
    "name", "paradigms", "author", "year", "typesys", "memsys", "dimensions", "class", "influence", "influenced",
    "refimpl", "files",
)  # fmt: skip
INFOBOX = (
    "\n|-\n".join(
        [
            '{| class="infobox"\n! colspan=2 | secret of the box',
            *(f"! {key}\n| {{{{{{{key}|}}}}}}" for key in _KEYS),
        ]
    )
    + "\n|}"
)
NAVBOX = '<div class="navbox" role="navigation">[[Befunge]] [[Brainfuck]] secret of the navbox</div>'

CONSTRUCTS = """{{Infobox proglang}}
'''Constructs''' is a page for tests.<ref>secret of the reference</ref>
It has a <math>\\frac{a}{b} < c</math> and 2<sup>8</sup> x<sub>i</sub>, the 1<sup>st</sup>.

== Lists & more ==
Intro:
# one
# two
#* inside
# three
* ''bullet''
: indented

=== Table ===
{| class="wikitable"
|+ The caption
! A !! B
|-
| c || d<br>e
|-
|
{|
| n1 || n2
|-
| n3
|}
| after
|}

== Lists & more ==
<pre>
 a  b\t<nowiki>&lt;</nowiki>  ; c

   ''not italic''
</pre>
<syntaxhighlight lang="c">
int main(void) {

    return '"' < 0 && 1;   /* two  spaces */
}
</syntaxhighlight>
 leading  space
 kept : here
Inline <syntaxhighlight lang="c" inline>x = 1;</syntaxhighlight> and <code>y</code>.

[[File:Nothing.png|thumb|secret of the picture]]
{{Navbox}}
[[Category:Tests]]
"""

EXTRA = {
    "Template:Infobox proglang": INFOBOX,
    "Template:Navbox": NAVBOX,
    "Constructs": CONSTRUCTS,
    "Way to constructs": "#REDIRECT [[Constructs#Table]]",
    "Loop": "#REDIRECT [[Loop of it]]",
    "Loop of it": "#REDIRECT [[Loop]]",
    "Help:Zyzzyva guide": "The zyzzyva guide is in the help namespace.",
    "Way to help": "#REDIRECT [[Help:Zyzzyva guide]]",
}


def sample_pages(folder: Path) -> dict[str, str]:
    """Wikitext by title."""
    return {
        unquote(file.name.removesuffix(".wiki")).replace("_", " "): file.read_text(encoding="utf-8")
        for file in sorted(folder.glob("*.wiki"))
    }


def export(pages: dict[str, str]) -> str:
    """A MediaWiki XML export with one revision of each page."""
    out = ['<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">']
    for title, text in pages.items():
        out.append(
            f"<page><title>{escape(title)}</title><revision><timestamp>2020-01-01T00:00:00Z</timestamp>"
            "<contributor><username>Admin</username></contributor>"
            f'<text xml:space="preserve">{escape(text)}</text></revision></page>'
        )
    return "\n".join([*out, "</mediawiki>"])
