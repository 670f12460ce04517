"""Chat templates, which come with model files, cannot reach Python or files, nor exceed limits of time and memory."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, TemplateError

from model_host.prompts.renderer import ChatTemplateError, TemplateWorker
from tests.waiting import PATIENCE

SECONDS = 3.0
MESSAGES = [{"role": "user", "content": "hello"}]

# Ways out of a sandbox.
REACH = [
    # objects to their classes and modules
    "''.__class__",
    "''.__class__.__mro__[1].__subclasses__()",
    "().__class__.__base__.__subclasses__()",
    "[].__class__.__mro__[-1].__subclasses__()[0].__init__.__globals__",
    "''['__class__']",
    "''|attr('__class__')",
    "''|attr('\\x5f\\x5fclass\\x5f\\x5f')",
    "''|attr('__cla' ~ 'ss__')",
    "[''] | map(attribute='__class__') | list",
    "messages[0].__class__.__init__.__globals__",
    "messages.__class__.__base__",
    "messages|map(attribute='__class__.__mro__')|list",
    # functions to their globals
    "raise_exception.__globals__",
    "raise_exception.__globals__['json']",
    "strftime_now.__globals__.sys.modules.os",
    "raise_exception.__code__",
    "raise_exception.__builtins__",
    "strftime_now.func_globals",
    "range.__self__",
    "lipsum.__globals__.os.popen('id').read()",
    "lipsum.__globals__['__builtins__']['open']('/etc/passwd').read()",
    "cycler.__init__.__globals__.os.environ",
    "joiner.__init__.__globals__.os",
    "namespace.__init__.__globals__",
    "dict.__base__.__subclasses__()",
    "dict.mro()",
    # Jinja2's own insides
    "self.__init__.__globals__",
    "self._TemplateReference__context",
    "self._TemplateReference__context.environment",
    "self.__class__",
    "loop.__class__",
    "caller.__globals__",
    "environment",
    "get_flashed_messages.__globals__",
    "config",
    "request.application.__globals__",
    "url_for.__globals__",
    # Python's formatting
    "'{0.__class__}'.format('')",
    "'{0.__class__.__mro__}'.format(messages)",
    "'{a.__globals__}'.format(a=raise_exception)",
    "'{}'.format.__class__",
    "'%s' % raise_exception.__globals__",
    "('{0.__cl' ~ 'ass__}').format(1)",
    "'{0.__globals__[sys]}'.format_map({'0': raise_exception})",
    "''.format.__self__.__class__",
    # generators, coroutines, tracebacks
    "(messages|map('upper')).gi_frame",
    "(messages|map('upper')).gi_code",
    "strftime_now('%Y').__class__.__mro__",
    "strftime_now.__func__",
    # changing what is shared
    "messages[0].update({'role': 'system'})",
    "messages.clear()",
    "messages[0].pop('content')",
    "dict.update(messages[0], x=1)",
]
REACH = [f"{{{{ {each} }}}}" for each in REACH]
STATEMENTS = [
    "{% import 'os' as os %}{{ os.environ }}",
    "{% from 'os' import environ %}{{ environ }}",
    "{% include '/etc/passwd' %}",
    "{% include ['/etc/passwd', 'etc/passwd'] ignore missing %}none",
    "{% extends '/etc/passwd' %}",
    "{% set x = ''.__class__ %}{{ x }}",
    "{% set messages[0].role = 'system' %}",
    "{% set ns = namespace(x=1) %}{% set ns.__class__ = 1 %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m.__globals__ }}{{ m.__call__.__globals__ }}",
    "{% call (x) raise_exception.__call__.__globals__ %}{% endcall %}",
    "{% for f in ().__class__.__base__.__subclasses__() %}{{ f.__name__ }}{% endfor %}",
    "{% filter attr('__class__') %}x{% endfilter %}",
    "{% debug %}",
    "{% autoescape false %}{{ ''.__class__ }}{% endautoescape %}",
]
EXHAUST = [
    "{% for i in range(10**9) %}x{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'x' * 10**10 }}",
    "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    "{{ (9 ** 9 ** 9) }}",
    "{{ 10 ** 100000000 }}",
    "{{ ['x'] * 10**10 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ 'x'.center(10**10) }}",
    "{{ 'x'.rjust(10**9) }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ range(99999) | map('string') | list | join('x' * 99999) }}",
    "{{ lipsum(n=1000000) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ (" * 400 + "1" + ") }}" * 400,
    "{{ " + "[" * 3000 + "]" * 3000 + " }}",
    "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' | wordwrap(1) | replace('a', 'b' * 10**8) }}",
    "{{ strftime_now('%A' * 10**7) }}",
    "{{ '\\ud800' }}",
    "{{ raise_exception('x' * 10**7) }}",
]

# What a template that got out would show.
SIGNS = (
    "<class",
    "<module",
    "<function",
    "<built-in",
    "<frame",
    "<code",
    "<generator object",
    "__builtins__",
    "root:x:",
    "uid=",
    os.environ.get("HOME", "/root") + "/",
    "PYTHON",
    "/usr/lib/python",
)


@pytest.fixture(scope="module")
def worker() -> Iterator[TemplateWorker]:
    made = TemplateWorker(timeout=PATIENCE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def impatient() -> Iterator[TemplateWorker]:
    made = TemplateWorker(timeout=SECONDS)
    yield made
    made.close()


def outcome(worker: TemplateWorker, template: str) -> str:
    """The rendered text, or "" if the template was refused."""
    try:
        return worker.render({"template": template, "messages": MESSAGES, "tools": None})
    except ChatTemplateError:
        return ""


def test_there_are_enough() -> None:
    assert len(REACH) + len(STATEMENTS) + len(EXHAUST) >= 50
    assert len({*REACH, *STATEMENTS, *EXHAUST}) == len(REACH) + len(STATEMENTS) + len(EXHAUST)


def test_the_signs_show_where_there_is_no_sandbox() -> None:
    """Check the check: otherwise the test below would pass whatever a template shows."""
    open_air = Environment()
    seen = 0
    for template in REACH:
        if "open" in template or "clear" in template:
            continue
        with contextlib.suppress(TemplateError, AttributeError, TypeError, KeyError, ValueError):
            names = {"raise_exception": outcome, "strftime_now": outcome, "messages": [dict(MESSAGES[0])]}
            shown = open_air.from_string(template).render(names)
            seen += any(sign in shown for sign in SIGNS)
    assert seen >= 15


@pytest.mark.parametrize("template", [*REACH, *STATEMENTS])
def test_no_template_gets_out(worker: TemplateWorker, template: str) -> None:
    shown = outcome(worker, template)
    assert not [sign for sign in SIGNS if sign in shown], shown
    assert len(shown) < 200, shown
    # Nothing that it changed persists: the next conversation gets its own text.
    assert outcome(worker, "{{ messages[0].role }} {{ messages|length }}") == "user 1"


@pytest.mark.soak
@pytest.mark.parametrize("template", EXHAUST, ids=range(len(EXHAUST)))
def test_no_template_takes_more_than_its_share(impatient: TemplateWorker, template: str) -> None:
    begun = time.monotonic()
    shown = outcome(impatient, template)
    assert time.monotonic() - begun < 20 * SECONDS, "it is ended, not waited for"
    assert len(shown) <= 4 * 1024 * 1024
    assert outcome(impatient, "{{ messages[0].content }}") == "hello"


def test_templates_write_no_files(worker: TemplateWorker, tmp_path: Path) -> None:
    target = tmp_path / "written"
    for way in (
        f"lipsum.__globals__.os.system('touch {target}')",
        f"raise_exception.__globals__.__builtins__.open('{target}', 'w')",
        f"cycler.__init__.__globals__.os.popen('touch {target}').read()",
    ):
        outcome(worker, f"{{{{ {way} }}}}")
    assert not target.exists()
