"""Modules of the page by themselves, called in a real browser: what they make of hostile and of broken input."""

from __future__ import annotations

from typing import Any

from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser

RENDER = (
    "{ const box = document.createElement('div'); box.append(page.render(values[0])); return box.innerHTML; }"
)


def test_markdown(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    for text, html in (
        ("One\ntwo\n\nthree", "<p>One\ntwo</p><p>three</p>"),
        (
            "a **bold** `co**de**` ``b`q``",
            "<p>a <strong>bold</strong> <code>co**de**</code> <code>b`q</code></p>",
        ),
        (
            "- a\n- b\n  more\n\n1. x\n2) y",
            '<ul><li>a</li><li>b\nmore</li></ul><ol start="1"><li>x</li><li>y</li></ol>',
        ),
        ("```py\na < b\n\n```\nend", '<pre tabindex="0"><code>a &lt; b\n</code></pre><p>end</p>'),
        ("~~~\nopen", '<pre tabindex="0"><code>open</code></pre>'),
        ("## Head", '<p class="heading">Head</p>'),
        ("<b>x</b> [a](http://b) ![c](d) [1]", "<p>&lt;b&gt;x&lt;/b&gt; [a](http://b) ![c](d) [1]</p>"),
        ("** no bold ** and ` no code", "<p>** no bold ** and ` no code</p>"),
        (
            "| a | **b** |\n|---|---|\n| 1 | x [1] |\nend",
            "<table><tr><th>a</th><th><strong>b</strong></th></tr><tr><td>1</td><td>x [1]</td></tr></table>"
            "<p>end</p>",
        ),
        (
            "a | b\n--- | :-:\n1 | x \\| y\n2 |\n\nend | or",
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>x | y</td></tr><tr><td>2</td></tr></table>"
            "<p>end | or</p>",
        ),
        ("| alone |", "<p>| alone |</p>"),
        ("a | b\nc | d", "<p>a | b\nc | d</p>"),
        ("Yes | No\n---", "<p>Yes | No\n---</p>"),
        ("", ""),
    ):
        assert browser.call("markdown.js", RENDER, text) == html


def test_markdown_loses_no_word_and_stays_quick(browser: Browser, served: Server) -> None:
    """Hundreds of thousands of characters of every construct that begins and never ends."""
    browser.open(served.url)
    for piece in (
        "x`",
        "x``",
        "**",
        "**a",
        "- ",
        "1. ",
        "# ",
        " ",
        "```\n",
        "[1",
        "[1]",
        "\n\n",
        "> ",
        "\\",
        "|a|\n",
        "-|\n",
    ):
        text = piece * 50_000 + "end"
        script = (
            "{ const box = document.createElement('div'); box.append(page.render(values[0]));"
            "  return [box.textContent.endsWith('end'),"
            "    Array.from(new Set(Array.from(box.querySelectorAll('*'), each => each.localName)))]; }"
        )
        ends, tags = browser.call("markdown.js", script, text)
        assert ends, piece
        assert set(tags) <= {"p", "ul", "ol", "li", "pre", "code", "strong", "table", "tr", "td", "th"}


def test_only_web_addresses_become_links(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    for address in (
        *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)"),
        *("data:text/html,x", "vbscript:x", "blob:x", "file:///x", "//x", "x", ""),
    ):
        made = browser.call("dom.js", "page.outside(values[0], 'a title').outerHTML", address)
        assert made == "<span>a title</span>", address


def events(browser: Browser, chunks: list[list[int]]) -> Any:
    """What the page reads from a body that arrives in these pieces."""
    script = (
        "(async () => {"
        "  const body = new ReadableStream({ start(to) {"
        "    for (const chunk of values[0]) to.enqueue(new Uint8Array(chunk)); to.close(); } });"
        "  const found = [];"
        "  for await (const each of page.events(body)) found.push([each.event, each.data]);"
        "  return found; })()"
    )
    return browser.call("sse.js", script, chunks)


def test_events_arrive_whole_in_whatever_pieces(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    text = ': ping\n\nevent: delta\ndata: {"text":"Huế 🐐"}\n\nevent: done\r\ndata: [1,\r\ndata: 2]\r\n\r\ndata: "cut'
    body = text.encode()
    wanted = [["delta", {"text": "Huế 🐐"}], ["done", [1, 2]]]
    assert events(browser, [list(body)]) == wanted
    assert events(browser, [[byte] for byte in body]) == wanted
