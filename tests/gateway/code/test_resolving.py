"""Each step of the ladder, in Python and TypeScript: its edges, their origins, and what stays open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.code import queries
from tests.gateway.code.conftest import Indexable

Make = Callable[[dict[str, str | bytes]], Indexable]

AUTH = """
class Base:
    def check(self): ...

class AuthService(Base):
    def __init__(self):
        self.store = Store()

    def login(self):
        self.check()
        self.store.save()
        helper()

class Store:
    def save(self): ...

def helper(): ...
"""
USES = """
import auth
from auth import AuthService as Service, helper

def typed(service: Service):
    service.login()

def made():
    service = auth.AuthService()
    service.login()

def unknown(thing):
    thing.login()

def foreign():
    import os
    os.login()
"""


def test_the_ladder_of_python(project: Make) -> None:
    made = project({"auth.py": AUTH, "uses.py": USES})
    assert {
        ("auth.AuthService.login", "auth.Base.check", "self"),
        ("auth.AuthService.login", "auth.Store.save", "assignment"),
        ("auth.AuthService.login", "auth.helper", "same file"),
        ("uses.typed", "auth.AuthService.login", "type"),
        ("uses.made", "auth.AuthService.__init__", "import"),
        ("uses.made", "auth.AuthService.login", "assignment"),
        ("uses.unknown", "auth.AuthService.login", "unique name"),
    } <= made.edges()
    assert ("auth.AuthService", "auth.Base", "same file") in made.edges("base") or {
        ("auth", "auth.Base", "same file")
    } <= made.edges("base")


def test_callers_are_confirmed_possible_or_unresolved(project: Make) -> None:
    made = project({"auth.py": AUTH, "uses.py": USES, "more.py": "class Other:\n    def login(self): ...\n"})
    answer = made.database.read_sync(lambda c: queries.callers(c, made.id, "AuthService.login"))
    assert [use.caller for use in answer.confirmed] == ["uses.typed", "uses.made"]
    assert answer.possible == []
    assert [use.caller for use in answer.unresolved] == ["uses.unknown"], "two classes have a `login` now"


def test_a_call_on_a_base_may_reach_an_overriding_method(project: Make) -> None:
    text = (
        "class A:\n    def act(self): ...\nclass B(A):\n    def act(self): ...\ndef f(a: A):\n    a.act()\n"
    )
    made = project({"m.py": text})
    answer = made.database.read_sync(lambda c: queries.callers(c, made.id, "B.act"))
    assert (answer.confirmed, [use.caller for use in answer.possible]) == ([], ["m.f"])


def test_functions_that_are_passed_on_are_possible(project: Make) -> None:
    made = project({"m.py": "def run(f):\n    f()\ndef job(): ...\nrun(job)\n"})
    assert ("m.run", "m.job", "flow") in made.edges()


TYPESCRIPT = {
    "src/service.ts": """
export interface Logger { log(text: string): void }
export class Service {
    constructor(private logger: Logger, private store = new Store()) {}
    run() { this.logger.log("x"); this.store.put(); helper(); }
}
class Store { put() {} }
function helper() {}
export default Service;
""",
    "src/main.ts": """
import Chosen, { Service as S } from "./service";
const s: S = new S(null);
s.run();
new Chosen(null).run();
const later = () => s.run();
""",
    "src/old.js": """
const { Service } = require("./service");
module.exports = { go() { return new Service().run(); } };
""",
}


def test_the_ladder_of_typescript_and_javascript(project: Make) -> None:
    found = {(a, b) for a, b, _ in project(dict(TYPESCRIPT)).edges()}
    assert {
        ("src.service.Service.run", "src.service.Logger.log"),
        ("src.service.Service.run", "src.service.Store.put"),
        ("src.service.Service.run", "src.service.helper"),
        ("src.main", "src.service.Service.constructor"),
        ("src.main", "src.service.Service.run"),
        ("src.main.later", "src.service.Service.run"),
        ("src.old.go", "src.service.Service.run"),
    } <= found


@pytest.mark.parametrize(
    "source",
    [
        b"(" * 200_000,
        b"a" + b".b()" * 50_000,
        b"x = " + b"[" * 2900,
        "\n".join(" " * i + "if x:" for i in range(800)).encode(),
        b"\xff\xfe\x80 def f(:\n",
        b"def f():\n  return f\nf" + b"()" * 1200,
        b"class A(B): ...\nclass B(A): ...\nA().x()\n",
        b"a = b\nb = a\na()\n",
        b"",
    ],
)
def test_deep_broken_and_circular_text_is_indexed(project: Make, source: bytes) -> None:
    made = project({"bad.py": source, "bad.ts": source, "good.py": "def g(): ...\ng()\n"})
    assert ("good", "good.g", "same file") in made.edges()


def test_secrets_are_not_stored(project: Make, tmp_path: object) -> None:
    secret = "AKIA" + "QZ7XK2M4N8P1R5T9"
    made = project(
        {
            "m.py": f'def f(key="{secret}"):\n    """{secret}"""\n    g("{secret}").h()\n',
            "a.md": f"# K\n{secret}\n",
        }
    )
    stored = b"".join(file.read_bytes() for file in made.database.path.parent.glob("hearth.db*"))
    assert secret.encode() not in stored
