"""MediaWiki's HTML to text. tests/mediawiki compares with a real MediaWiki's HTML of the sample wiki."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wiki.html.page import extract_html
from gateway.wiki.html.tokens import Tag, tokens
from gateway.wiki.wikitext.extract import extract


def lead(html: str) -> str:
    sections = extract_html(html)
    assert len(sections) == 1
    return sections[0].text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one\ntwo   three\n</p><p>four</p>", "one two three\n\nfour"),
        ("<b>b</b> <i>i</i>, <a href='/x'>a</a>s&#160;&lt;b&gt; &amp;lt;", "b i, as <b> &lt;"),
        ("<p>a<br>b<br />\nc</p><p><br />\n</p>d", "a\nb\nc\n\nd"),
        ("2<sup>8</sup>, x<sub>i</sub>, 1<sup>st</sup> 2<sup><i>n</i></sup>", "2^8, x_i, 1st 2^n"),
        ("10<sup>(b−a)/360</sup>, x<sub>i+1</sub>, f<sup>(n)</sup>, 2<sup>8", "10^((b−a)/360), x_(i+1), f^(n), 2^8"),
        ("a<!-- x --><!---->b<!x>c<?y?>d</3>e", "abcde"),
        ("1 < 2 <3 <", "1 < 2 <3 <"),
        ("a<script>if (a</b>) '</p>'</script>b<style>x</STYLE>c", "abc"),
        ("a<img alt=x>b<wbr>c<hr>d", "abc\n\nd"),
        ("<A TITLE='>' href=\"<p>\">a</A>", "a"),
        ("a<b title='unfinished", "a"),
        ("see <a class='external autonumber' href='https://x.org/?a&amp;b'>[1]</a>", "see https://x.org/?a&b"),
        ("<a class=new title='Template:X (page does not exist)'>Template:X</a>a <a class=new title=X>b</a>", "a b"),
        ("a<a class='permalink' href='#a'>¶</a><div class='contents'><ul><li>b</ul></div>", "a"),
        ("<table class='index-fn'><tr><td>read<td>6 <tr><td>set<td>7</table>a", "a"),
        ("a<a class='headerlink' title='Permalink'>¶</a>, <a class='reference internal' href='#b'>b</a>", "a, b"),
        ("a<sup class='reference'><a>[1]</a></sup>b<span style='display: none'>c</span>", "ab"),
        ("a\ufdd0b\0c\ufdd3&#xfdd0;", "a\ufffdbc\ufffd"),
    ],
)  # fmt: skip
def test_text_in_a_line(html: str, text: str) -> None:
    assert lead(html) == text


def test_an_infobox_stands_at_the_end_of_its_section() -> None:
    box = (
        "<table class='infobox vcard'><caption>Mill</caption><tr><th colspan=2>Holm mill</th></tr>"
        "<tr><td colspan=2><img src=x></td></tr><tr><th>Built</th><td>1871<sup class=reference>[1]</sup></td></tr>"
        "<tr><th>Made</th><td><ul><li>flour</li><li>bran</li></ul></td></tr></table>"
    )
    first, later = extract_html(
        f"{box}<p>The mill is old.</p><h2>Later</h2><table><tr><td>{box}x</td></tr></table>"
    )
    assert first.text == "The mill is old.\n\nBuilt | 1871\nMade | - flour - bran"
    assert later.text == "Mill; Holm mill; Built | 1871; Made | - flour - bran x"


@pytest.mark.parametrize(
    "name", ["navbox", "metadata", "hatnote", "toc", "reflist", "NavBox x", "x noprint", "thumb"]
)
def test_boxes_and_navigation_are_left_out(name: str) -> None:
    assert lead(f"a <div class='{name}'>b <div>c</div> <table><tr><td>d</table> <p>e</div>f") == "a f"


def test_pictures_forms_and_navigation_are_left_out() -> None:
    html = "<figure><img><figcaption>x</figcaption></figure><nav>x</nav><div role=navigation>x</div><form>x</form>a"
    assert lead(html) == "a"


def test_contents_copyright_and_numbers_of_notes_are_left_out() -> None:
    html = (
        "<p>One<a class='footnote-reference brackets' href=#f>[1]</a> is two<a class=footnote><sup class=footnote>[2]"
        "</sup></a>.</p><div class='toctree-wrapper compound'><ul><li><a>2. Other chapters</a></li></ul></div>"
        "<div class=footnote><p><a class=para><sup class=para>[2] </sup></a>A note.</p></div>"
        "<div class=longdesc-link><a>[D]</a></div><div class=footer role=contentinfo>© Copyright 2023.</div>"
    )
    first, notes = extract_html(f"<h2>Numbers</h2>{html}")[1:]
    assert (first.heading, first.text, notes.heading, notes.text) == (
        "Numbers",
        "One is two.",
        "Notes",
        "A note.",
    )


def test_questions_of_a_docbook_faq_are_headings() -> None:
    html = (
        "<div class=qandaset><dl><dt>1. <a>Why?</a></dt></dl><table><tr class=question><td><p>1.</p></td><td><p>Why is "
        "it <b>blue</b>?</p></td></tr><tr class=answer><td></td><td><p>It is paint.</p><table><tr><td>a</td><td>b</td>"
        "</tr></table></td></tr></table></div><table><tr><td>c</td><td>d</td></tr></table>"
    )
    sections = extract_html(html)
    assert [(each.heading, each.level, each.text) for each in sections] == [
        ("", 1, ""),
        ("1. Why is it blue?", 4, "It is paint.\n\na | b\n\nc | d"),
    ]
    number = "<span><span class=fn-bracket>[</span><a role=doc-backlink>1</a></span>"
    footnote = f"<p>Text.</p><aside class=footnote>{number}A note.</aside>"
    assert [each.text for each in extract_html(footnote)] == ["Text.", "A note."]


def test_a_table_around_a_text_and_breaks_between_sentences() -> None:
    note = (
        "<table><tr><td rowspan=2><img></td><th>Note</th></tr><tr><td>It has an older name.</td></tr></table>"
    )
    html = f"<ul><li>full-upgrade: It upgrades more.{note}</li></ul>"
    assert lead(html) == "- full-upgrade: It upgrades more.\n  Note\n  It has an older name."
    assert lead("Open the file menu.<br>Then choose the first entry.") == (
        "Open the file menu.\n\nThen choose the first entry."
    )
    assert lead("Roses are red,<br>violets are blue.") == "Roses are red,\nviolets are blue."


def test_sections_of_old_and_new_wikis() -> None:
    html = """<p>intro</p>
    <h2><span id="A_.26_B"></span><span class="mw-headline" id="A_&amp;_B">A &amp; <i>B</i></span>
    <span class="mw-editsection">[edit]</span></h2><p>x
    <div class="mw-heading mw-heading3"><h3 id="C">C</h3><span class="mw-editsection">[edit]</span></div>y
    <h4>No  id</h4>"""
    assert [(s.heading, s.anchor, s.level, s.text) for s in extract_html(html)] == [
        ("", "", 1, "intro"),
        ("A & B", "A_&_B", 2, "x"),
        ("C", "C", 3, "y"),
        ("No id", "No_id", 4, ""),
    ]


def test_lists_are_as_the_extractor_makes_them() -> None:
    html = """<p>Intro:
</p><ul><li>one
<ul><li>deeper <i>x</i>
<ul><li>deepest</li></ul></li></ul></li>
<li>two</li></ul>
<ol><li>first</li>
<li>second
<ul><li>inside</li></ul>
<dl><dd>more on it</dd></dl></li>
<li>third<br />line</li></ol>
<ol start="5"><li>fifth</li><li value="9">ninth</li><li>tenth</li></ol>
<dl><dt>other</dt>
<dd>its text
<dl><dd>further</dd></dl></dd></dl>"""
    wikitext = """Intro:
* one
** deeper ''x''
*** deepest
* two

# first
# second
#* inside
#: more on it
# third<br>line

; other
: its text
:: further"""
    numbered = "5. fifth\n9. ninth\n10. tenth\n\n"
    assert lead(html).replace(numbered, "") == lead_of_wikitext(wikitext)
    assert numbered in lead(html)


def lead_of_wikitext(wikitext: str) -> str:
    (section,) = extract(wikitext)
    return section.text


def test_tables_are_rows_of_cells() -> None:
    html = """<table><caption>The <b>caption</b>
</caption><tbody><tr><th>A</th><th>B
</th></tr><tr><td></td><td> </td></tr><tr>
<td>c<br />d</td><td>e <ul><li>f</li><li>g</li></ul><p>h</p>
</td></tr><tr><td>i<table><tr><td>j</td><td>k</td></tr><tr><td>l</td></tr></table>m</td>
<td><pre>x
 y</pre>z</td></tr></tbody></table>n"""
    assert lead(html).splitlines() == [
        "The caption",
        "A | B",
        "c d | e - f - g h",
        "i j | k; l m | x",
        " y",
        "z",
        "",
        "n",
    ]


def test_the_sign_of_a_link_is_no_part_of_a_heading() -> None:
    html = "<h2>One ¶</h2>a<h2>Two #</h2>b<h2>C#</h2>c"
    assert [each.heading for each in extract_html(html)] == ["", "One", "Two", "C#"]


def test_a_heading_in_a_table_begins_no_section() -> None:
    assert lead("<table><tr><td><h2>a</h2>b</td></tr></table>c") == "a b\n\nc"


def test_tables_in_tables_in_tables() -> None:
    text = lead("<table><tr><td>x" * 50 + "</td></tr></table>" * 50)
    assert text.count("x") == 50
    assert "|" not in text


@pytest.mark.parametrize(
    ("html", "code"),
    [
        ("<pre>\n\nx\n</pre>", "\nx"),
        ("<pre>x</pre>", "x"),
        ("<pre> a\t b&lt;<b>c</b>\n\n  d\n</pre>", " a\t b<c\n\n  d"),
        ("<pre>kept&#160;: here «&#160;x&#160;» but a&#160;b</pre>", "kept : here « x » but a\u00a0b"),
        ("<pre>a<br>b</pre>", "a\nb"),
        ('<div class="mw-highlight"><pre><span></span><i>int</i> a&#160;;\n\n</pre></div>', "int a\u00a0;"),
        (
            '<div class="mw-highlight"><pre><span class="linenos" data-line="1">1</span>a\n'
            '<span class="lineno">2 </span> b\n</pre></div>',
            "a\n b",
        ),
        ("<ul><li>a<pre>x\n y</pre></li></ul>", "- a\nx\n y"),
    ],
)  # fmt: skip
def test_code_is_kept_byte_for_byte(html: str, code: str) -> None:
    assert lead(html) == code


@pytest.mark.parametrize(
    "math",
    [
        r'<span class="mwe-math-fallback-source-inline tex" dir="ltr">$ \frac{a}{b} &lt; c $</span>',
        r'<span class="mwe-math-fallback-source-display tex" dir="ltr">$ {\displaystyle \frac{a}{b} &lt; c} $</span>',
        r'<math alttext="{\displaystyle \frac{a}{b} &lt; c}"><semantics><mrow><mi>a</mi></mrow>'
        r'<annotation encoding="application/x-tex">{\displaystyle \frac{a}{b}}</annotation></semantics></math>',
        r'<span class="mwe-math-element"><span class="mwe-math-mathml-inline mwe-math-mathml-a11y" '
        r'style="display: none;"><math alttext="{\displaystyle \frac{a}{b} &lt; c}"><mi>a</mi></math></span>'
        r'<img class="mwe-math-fallback-image-inline" alt="{\displaystyle \frac{a}{b} &lt; c}"></span>',
        r'<img class="mwe-math-fallback-image-inline tex" alt="\frac{a}{b} &lt; c">',
    ],
)
def test_mathematics_comes_as_its_source(math: str) -> None:
    assert lead(f"<p>so {math}.") == r"so \frac{a}{b} < c."
    assert lead(f"<p>{math} and {math}").count("frac") == 2


def test_tags_have_attributes() -> None:
    (tag,) = tokens('<a b=c  D = \'e"\' f g="&lt;>" b=second h=/>')
    assert isinstance(tag, Tag)
    assert tag.attributes == {"b": "c", "d": 'e"', "f": "", "g": "<>", "h": "/"}


PIECES = [
    *("<a ", "<", "</", "<!--", "<!", "<?", "<a b='", '<a b="', "<a =", "=", "&", "&#", "&lt;", "text ", "\n", " "),
    *("<div>", "</div>", "<b id=1>", "<p class='a b'>", "<br>", "<pre>", "</pre>", "<pre>\n", "<script>", "</script"),
    *("<ul>", "<li>", "</li>", "</ul>", "<ol start=7>", "<dl><dd>", "<dt>", "<ul><li>x", "<h2>", "</h2>", "<h2>a</h2>"),
    *("<table>", "<tr>", "<td>", "</td>", "</tr>", "</table>", "<caption>", "<table><tr><td>x"),
    *("<sup>", "</sup>", "<sub>"),
    *("<span class='mwe-math-fallback-source-inline'>$x", "</span>", "<math alttext='{\\displaystyle x}'>", "</math>"),
    *("<img class=mwe-math-fallback-image alt=x>", "<div class=navbox>", "<div class=mw-highlight>"),
    *("\u00a0;", "«\u00a0", "]]>", "{\\textstyle "),
    *("<a class=autonumber href=x>", "</a>", "\ufdd0", "\ufdd2", "\0", "<svg/>", "<!doctype html>"),
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=60))
def test_anything_is_read(pieces: list[str]) -> None:
    html = "".join(pieces)
    sections = extract_html(html)
    assert (sections[0].heading, sections[0].anchor, sections[0].level) == ("", "", 1)
    assert all(1 <= section.level <= 6 for section in sections)
    text = "".join(section.heading + section.text for section in sections)
    assert not any(mark in text for mark in "\0\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5\ufdd6\ufdd7")
    assert extract_html(html) == sections


@given(st.lists(st.sampled_from(["<p>", "</p>", "<b>", "</div>", "<li>", "</td>", "</table>"]), max_size=20))
def test_stray_tags_lose_no_text(tags: list[str]) -> None:
    html = "".join(f"{tag}w{index} " for index, tag in enumerate(tags))
    words = "".join(section.text for section in extract_html(html)).split()
    assert words == [f"w{index}" for index in range(len(tags))]


@given(st.text(alphabet=st.characters(exclude_characters="\r\0", exclude_categories=("Cs",)), max_size=80))
def test_code_of_any_characters_stays_as_it_is(code: str) -> None:
    escaped = code.replace("&", "&amp;").replace("<", "&lt;").replace("\u00a0", "&#160;")
    if code.strip("\n") and not any("\ufdd0" <= character <= "\ufdd7" for character in code):
        assert lead(f'<div class="mw-highlight"><pre>{escaped}</pre></div>') == code.strip("\n")


@pytest.mark.parametrize("piece", PIECES)
def test_hostile_html_is_quick(piece: str) -> None:
    html = piece * (60_000 // len(piece))
    started = time.process_time()
    extract_html(html)
    extract_html('<a b="' + html)
    # Linear work takes about 0.2 s; anything quadratic takes minutes.
    assert time.process_time() - started < 5
