from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wiki.wikitext.extract import extract, normal_title, redirect_target


def lead(wikitext: str) -> str:
    sections = extract(wikitext)
    assert len(sections) == 1
    return sections[0].text


def test_sections_with_levels_and_anchors() -> None:
    sections = extract(
        "intro\n== A & B ==\nx\n=== ''C'' [[d|D]] ===\ny\n==A &amp; b==\n== <code>[</code> ==\n== A & B =="
    )
    assert [(s.heading, s.anchor, s.level, s.text) for s in sections] == [
        ("", "", 1, "intro"),
        ("A & B", "A_&_B", 2, "x"),
        ("C D", "C_D", 3, "y"),
        ("A & b", "A_&_b_2", 2, ""),
        ("[", "[", 2, ""),
        ("A & B", "A_&_B_3", 2, ""),
    ]


def test_anchors_never_repeat() -> None:
    sections = extract("".join(f"== {name} ==\n" for name in ("x", "x_2", "x", "x", "X 2", "x")))
    anchors = [s.anchor.lower() for s in sections]
    assert len(set(anchors)) == len(anchors)
    assert anchors[:4] == ["", "x", "x_2", "x_3"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("== a ==", (2, "a")),
        ("=a=", (1, "a")),
        ("=== a ==", (2, "= a")),
        ("======= a =======", (6, "= a =")),
        ("== a == <!-- why -->", (2, "a")),
        ("== a", None),
        ("==", None),
        ("===", (1, "=")),
    ],
)
def test_headings(line: str, found: tuple[int, str] | None) -> None:
    sections = extract("lead\n" + line)
    assert (found is None) == (len(sections) == 1)
    if found is not None:
        assert (sections[1].level, sections[1].heading) == found


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("'''bold''' ''italic'' '''''both''''' it's", "bold italic both it's"),
        ("P<nowiki>''</nowiki> and &#39;&#39;x&#39;&#39;", "P'' and ''x''"),
        ("[[a]]s, [[b|c ''d'']], [[e (f)|]], [[:Category:G]], [[H:i (j)|]]", "as, c d, e, Category:G, i"),
        ("see [[#Here]]", "see Here"),
        ("a[[Category:X]][[File:y.png|thumb|a [[link]] in\nit]]b [[de:Z]]", "ab"),
        ("[[><>]] and ><> and a < b > c", "><> and ><> and a < b > c"),
        ("[https://x.org/a b c] [https://x.org] [not a link]", "b c https://x.org [not a link]"),
        ("a{{b|{{c|d}}|e=[[f]]}}g {{{1|x}}}h", "ag h"),
        ("x {{!}} y {{=}} z", "x | y = z"),
        ("a<ref>b [http://c d]</ref><ref name=e />f<ref name='g'/>", "af"),
        ("a<!-- b\n\n== c ==\n-->d", "ad"),
        ("a\n<!-- alone -->\nb", "a b"),
        ("2<sup>8</sup>, x<sub>i</sub>, 1<sup>st</sup>", "2^8, x_i, 1st"),
        ("10<sup>(b−a)/360</sup>, 10<sup>−3</sup>, x<sub>i+1</sub>", "10^((b−a)/360), 10^−3, x_(i+1)"),
        ("f<sup>(n)</sup> a<sup>''x<sub>i+1</sub>''</sup> 2<sup>n</sup><sup></sup>", "f^(n) a^(x_(i+1)) 2^n"),
        ("2<sup>8 and on, e<sup><math>x+1</math></sup>", "2^8 and on, e^x+1"),
        ("a<br>b<br />\nc", "a\nb\nc"),
        ("<span style='x'>a</span> <unknown>b</unknown> <code>c</code>", "a <unknown>b</unknown> c"),
        ("&lt;b&gt; &amp;lt; &not &copy; &nosuch; &#x41;&#65;", "<b> &lt; &not © &nosuch; AA"),
        ("<nowiki>[[a]] {{b}} ''c'' &lt;</nowiki> <nowiki/>d", "[[a]] {{b}} ''c'' < d"),
        ("<math>\\frac{a}{b} < [[c]]</math>", "\\frac{a}{b} < [[c]]"),
        ("__NOTOC__a __init__", "a __init__"),
        ("one\ntwo\n\n\n\nthree\n----\nfour", "one two\n\nthree\n\nfour"),
        ("a&nbsp;b   c", "a b c"),
        ("[[unclosed and {{unclosed and ''x", "[[unclosed and {{unclosed and x"),
        ("++[[-]>]\n\nsee [[a|b]]", "++[[-]>]\n\nsee b"),
        ("}} ]] |}", "}} ]] |}"),
    ],
)
def test_inline_markup(wikitext: str, text: str) -> None:
    assert lead(wikitext) == text


INFOBOX = """The mill is old.
{{Infobox mill
| name = Holm<sub>2</sub> mill
| year_built = {{start date|1871|5}}
| builder = [[Ada Voss|Voss]]<ref>p. 2 | 3</ref>, {{nowrap|Per [[Lund|L]]}}
| class = Old: [[Wind mill|wind]]; new
| image = Mill.jpg
| image_size = 30px
| coat = x.SVG
| bodystyle = color: red; width: 2em
| products = {{plainlist|
* flour
* ''bran''
}}
| owner =
| part
}}
It stands at Holm.

== Later ==
Text.{{other box|year=1999}} {{mill infobox|closed=1904}}"""


def test_html_lists_are_one_line_per_item() -> None:
    wikitext = """Steps:
<ol style="list-style-type: decimal;">
<li><p>First.</p></li>
<li><p>Second.</p>
<p>With a
remark.</p>
<ul>
<li><p>inside</p></li></ul></li>
<li><pre>code</pre></li>
<li>Fourth.</li></ol>
<dl>
<dt>Red</dt>
<dd><p>All doors.</p></dd>
<dt>May I?</dt>
<dd><p>Yes.</p>
<p>Always.</p></dd></dl>
After.
<ul><li>open
== Next ==
Text."""
    first, second = extract(wikitext)
    assert first.text.splitlines() == [
        "Steps:",
        "1. First.",
        "2. Second. With a remark.",
        "  - inside",
        "code",
        "3. Fourth.",
        "",
        "- Red: All doors.",
        "- May I? Yes. Always.",
        "",
        "After.",
        "- open",
    ]
    assert second.text == "Text."


def test_a_box_is_known_by_its_form() -> None:
    box = "{{Thẻ cây\n| tên = Ớt\n| họ = Cà\n| cao = 1 m\n}}"
    assert lead(f"Text.\n{box}").splitlines() == ["Text.", "", "tên | Ớt", "họ | Cà", "cao | 1 m"]
    for other in (
        "{{Navbox\n| name = x\n| title = y\n| list1 = z\n}}",
        box.replace("\n| cao", "\n| bare\n| cao"),
    ):
        assert lead(f"Text.\n{other}") == "Text."


def test_an_infobox_becomes_rows_at_the_end_of_its_section() -> None:
    first, later = extract(INFOBOX)
    assert first.text.split("\n\n") == [
        "The mill is old.",
        "It stands at Holm.",
        "name | Holm_2 mill\nyear built | 1871, 5\nbuilder | Voss, Per L\nclass | Old: wind; new\n"
        "products | flour, bran",
    ]
    assert later.text == "Text.\n\nclosed | 1904"


def test_many_unclosed_brackets_do_not_hide_later_links() -> None:
    assert lead("[[\n\n" * 50 + "[[a|b]]").endswith("\n\nb")


def test_lists_are_numbered_indented_and_kept_line_by_line() -> None:
    wikitext = """Intro:
* one
** deeper ''x''
*** deepest
* two
# first
# second
#* inside
#: more on it
# third

# new list
; term : what it is
; other
: its text
:: further"""
    assert lead(wikitext).splitlines() == [
        "Intro:",
        "- one",
        "  - deeper x",
        "    - deepest",
        "- two",
        "1. first",
        "2. second",
        "  - inside",
        "  more on it",
        "3. third",
        "",
        "1. new list",
        "- term: what it is",
        "- other: its text",
        "    further",
    ]


def test_code_inside_a_list_does_not_restart_its_numbers() -> None:
    assert lead("# a <pre>x\n y</pre>\n# b") == "1. a\nx\n y\n2. b"


CODE = "  \t>:1-:v v *_$.@ \n\n ^    _$>\\:^\t \n''' [[x]] {{y}} * # == z == <!-- w --> &notin &copy ~"


@pytest.mark.parametrize("tag", ["pre", "syntaxhighlight", "source", "PRE"])
@pytest.mark.parametrize("attributes", ["", ' lang="befunge" line'])
def test_code_is_kept_byte_for_byte(tag: str, attributes: str) -> None:
    wikitext = f"Before\n<{tag}{attributes}>\n{CODE}\n</{tag}>\nafter '''it'''"
    assert lead(wikitext) == f"Before\n{CODE}\nafter it"
    assert lead(f"<{tag}{attributes}>{CODE}</{tag}>") == CODE
    section = extract(f"== Program ==\n\n<{tag}>\n{CODE}\n</{tag}>\n")[1]
    assert section.text == CODE


def test_entities_in_code_as_a_browser_shows_them() -> None:
    assert lead("<pre>&lt;<nowiki>&amp;</nowiki></pre>") == "<&"
    assert lead("<syntaxhighlight>&lt;</syntaxhighlight>") == "&lt;"
    assert lead('say <syntaxhighlight lang="c" inline>a[[0]];</syntaxhighlight> now') == "say a[[0]]; now"


def test_a_program_of_white_space_survives() -> None:
    program = "   \t \n\t\n     \t\t \n"
    assert lead(f"x\n<pre>\n{program}\n</pre>\ny") == f"x\n{program}\ny"


@settings(max_examples=150)
@given(st.text(alphabet=st.sampled_from(list("ab<>[]{}|=*#:;'!&- \t\n~_/\\")), max_size=60))
def test_any_program_is_kept_byte_for_byte(program: str) -> None:
    program = "x" + program + "x"  # blank lines at either end are not part of highlighted code
    assert lead(f"<syntaxhighlight>\n{program}\n</syntaxhighlight>") == program
    assert (
        extract(f"== h ==\n* item\n<syntaxhighlight>{program}</syntaxhighlight>")[1].text
        == f"- item\n{program}"
    )


def test_preformatted_lines_keep_their_spaces() -> None:
    assert lead("x:\n  a  '''b'''\n   c\nd") == "x:\n a  b\n  c\nd"


def test_tables_become_rows() -> None:
    wikitext = """Text
{| class="wikitable" style="x"
|+ style="y" | The '''caption'''
! Command !! style="z" | Meaning
|-
| <code>></code> || move [[right|to the right]]
|- valign=top
| align="left" | <code><nowiki>|</nowiki></code>
| two
lines
|-
| a | b
| &#124; || ||
|-
|}
After"""
    assert lead(wikitext).splitlines() == [
        "Text",
        "The caption",
        "Command | Meaning",
        "> | move to the right",
        "| | two lines",
        "a | b | | |  | ",
        "After",
    ]


def test_code_in_a_table_keeps_its_lines() -> None:
    assert lead("{|\n| a\n| <pre>x\n  y</pre>\n|-\n| b || c\n|}") == "a | x\n  y\nb | c"


def test_nested_and_unclosed_tables() -> None:
    assert lead("{|\n| a\n|\n{|\n| b || c\n|-\n| d\n|}\n|-\n| e\n|}\nf") == "a | b | c; d\ne\nf"
    sections = extract("{|\n| a\n== Next ==\ntext")
    assert [(s.heading, s.text) for s in sections] == [("", "a"), ("Next", "text")]
    assert lead("{|\n| a\n|-\n| [[b]]") == "a\nb"


@pytest.mark.parametrize(
    ("wikitext", "target"),
    [
        ("#REDIRECT [[Brainfuck]]", "Brainfuck"),
        ("\n#redirect: [[brain_fuck#History|x]]\n[[Category:Y]]", "Brain fuck"),
        ("#Redirect[[:Category:X]]", "Category:X"),
        ("#REDIRECT [[><>]]", "><>"),
        ("#REDIRECT", None),
        ("#REDIRECT [[#here]]", None),
        ("see #REDIRECT [[x]]", None),
        ("#REDIRECT [[x", None),
    ],
)
def test_redirects(wikitext: str, target: str | None) -> None:
    assert redirect_target(wikitext) == target


def test_titles_as_mediawiki_writes_them() -> None:
    assert normal_title("  brain_fuck  x ") == "Brain fuck x"
    assert normal_title("///") == "///"
    assert normal_title("ßeta") == "ßeta"
    assert normal_title("") == ""


WORDS = """
{{ }} {{{ }}} [[ ]] | || ! !! {| |} |- |+ == === ' '' ''' ''''' * # : ; < > & &lt; &#0; &#xD800;
&#1114112; <pre> </pre> <nowiki> </nowiki> <nowiki/> <ref> </ref> <ref/> <!-- --> <br> <li <a <math>
</math> <sup> <syntaxhighlight> </syntaxhighlight> http://x [http://x y] ---- __TOC__ File:
Category: #REDIRECT &#xFDD0; &#xFDD1; 0 a b
"""
PIECES = [
    *WORDS.split(),
    " ",
    "\n",
    "\n\n",
    "\t",
    "\r",
    "\0",
    "\ud800",
    "\ufdd0",
    "\ufdd1",
    "\ufdd00\ufdd1",
    "\ufdd3",
    "\ufdd4",
    "\ufdd5",
]
PIECES += ["{{note|", "{{key|", "{{infobox|", "{{infobox|a=", "|a=b", "<sup>", "<sub>", "</sub>", "<sub>a b"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text())
def test_any_text_gives_sections(wikitext: str) -> None:
    sections = extract(wikitext)
    assert sections[0].level == 1 and sections[0].heading == ""
    everything = "".join(s.heading + s.anchor + s.text for s in sections)
    assert not set(everything).intersection(map(chr, range(0xFDD0, 0xFDD8))), "a placeholder was left behind"
    redirect_target(wikitext)


HOSTILE = [
    *("[[", "]]", "{{", "}}", "{{{", "[[a|", "{{a|", "[[File:", "[[\n|", "[http://a ", "[//a", "#REDIRECT "),
    *("<b>", "<a ", "<pre ", "<pre>", "<pre>\n", "<ref>", "<ref ", "<!--", "<!-- -->\n", "<nowiki>", "<li "),
    *("</td>", "</td> ", "<br ", "<sup ", "'''", "''a'''b", "&", "&amp", "__", " ", "\n", "\n ", "*", "\n*"),
    *("{{infobox|", "{{infobox|a={{", "{{infobox|a=b\n}}", "<sup>", "<sup><sub>", "<sup>a b</sup>"),
    *("=", "=a", "\n=", "\n== a ==", "{|\n", "{|\n|\n", "|| ", "\n|-", "\n!", "\n#:*;"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_quick(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    start = time.perf_counter()
    extract(text)
    redirect_target(text)
    # Linear work takes about 0.1 s; anything quadratic takes minutes.
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        (
            "a\n{{Note|Private computers may not use the VPN.}}\nb",
            "a\n\nPrivate computers may not use the VPN.\n\nb",
        ),
        (
            "{{Warning\n| text = Never do [[that|this]] at home, {{nowrap|5 km}} away.\n}}",
            "Never do this at home, 5 km away.",
        ),
        ("{{Notice|\n* one thing\n* two things are here.}}", "- one thing\n- two things are here."),
        ("Press {{key|Ctrl|C}} or {{Menu|File|Save as}}.", "Press Ctrl+C or File → Save as."),
        ("{{Stub|This page is a stub and needs more.}}\nHi", "Hi"),
        ("{{Cleanup|reason=Nobody has looked at this.|date=May}}\nHi", "Hi"),
        ("{{main|Some other long page title}}\nHi", "Hi"),
        ("{{#if:a|b is so very good.|}}\nHi", "Hi"),
        ("{{{1|What stands here by default.}}}\nHi", "Hi"),
        ("It is so.{{Note|Not within a line of other text.}} Yes.", "It is so. Yes."),
    ],
)
def test_boxes_show_their_text(wikitext: str, text: str) -> None:
    assert "\n".join(section.text for section in extract(wikitext)) == text
