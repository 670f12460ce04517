"""Each step of the ladder, in Python and TypeScript: its edges, their origins, and what stays open."""

from __future__ import annotations

import pytest

from gateway.base.errors import NotFoundError
from gateway.code import queries
from tests.gateway.code.conftest import Make

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


def test_javascript_of_the_old_kind(project: Make) -> None:
    made = project(
        {
            "app.js": """var app = exports = module.exports = {};
app.init = function init() { this.set('a'); };
app.set = function (name) { app.render(); };
app.render = function () {};
var View = function (name) { this.lookup(name); };
View.prototype.lookup = function (name) { return name; };
function render() {}
render();
new View('x').lookup('y');
""",
            "main.js": """var app = require('./app');
app.init();
""",
        }
    )
    assert {(a, b) for a, b, _ in made.edges()} == {
        ("app.app.init", "app.app.set"),
        ("app.app.set", "app.app.render"),
        ("app.View", "app.View.lookup"),
        ("app", "app.render"),
        ("app", "app.View"),
        ("app", "app.View.lookup"),
        ("main", "app.app.init"),
    }


def test_overloads_and_chains_of_calls(project: Make) -> None:
    made = project(
        {
            "chain.ts": """export class Chain {
  add(): Chain;
  add(one?: string): Chain;
  // All of them.
  add(one?: any): Chain { return this; }
}
export function made(): Chain;
export function made(): any { return new Chain(); }
""",
            "index.ts": "export * as chain from './chain';\n",
            "use.ts": """import { chain } from './index';
class Sub extends chain.Chain { constructor() { super(); } }
new chain.Chain()
  .add()
  .add('x');
""",
        }
    )
    places = made.database.read_sync(lambda c: queries.find(c, made.id, "Chain.add"))
    assert [(each.line, each.signature) for each in places] == [(5, "add(one?: any): Chain")]
    uses = made.database.read_sync(lambda c: queries.callers(c, made.id, "Chain.add")).confirmed
    assert [(each.path, each.line) for each in uses] == [("use.ts", 4), ("use.ts", 5)]


def test_signatures_have_no_comments(project: Make) -> None:
    made = project({"a.py": "def f(  # why\n    a, # one\n    b,\n):  # done\n    # body\n    return a\n"})
    found = made.database.read_sync(lambda c: queries.find(c, made.id, "a.f"))
    assert found[0].signature == "def f( a, b, ):"


def test_callbacks_have_the_types_of_what_takes_them(project: Make) -> None:
    made = project(
        {
            "shop.ts": """class Shop { open(): void {} }
function visit(then: (shop: Shop, n: number) => void) {}
visit((shop) => shop.open());
function all(shops: Shop[]) { shops.forEach((each) => each.open()); }
""",
            "shop.py": """from collections.abc import Callable
class Store:
    def open(self): ...
def visit(then: Callable[[Store], None], again: Callable[[int], None] | None = None): ...
visit(lambda store: store.open())
visit(again=lambda store: store.open())
""",
        }
    )
    assert {edge for edge in made.edges() if edge[1].endswith("open")} == {
        ("shop.<lambda1>", "shop.Shop.open", "type"),
        ("shop.all.<lambda2>", "shop.Shop.open", "type"),
        ("shop.<lambda1>", "shop.Store.open", "type"),
    }


def test_items_that_are_set_and_functions_that_are_called_back(project: Make) -> None:
    made = project(
        {
            "a.py": """def f(): ...
def g(): ...
def h(): ...
handlers = {"a": f, "b": f}
handlers["a"] = g
def register(key):
    handlers[key] = h
register("c")
handlers["a"]()
sorted([], key=f)
def outer(inner):
    def run():
        inner()
    return run
@outer
@outer
def twice(): ...
"""
        }
    )
    assert {("a", "a.g", "flow"), ("a", "a.h", "flow"), ("a", "a.f", "flow")} <= made.edges()
    called = made.database.read_sync(lambda c: queries.callers(c, made.id, "f"))
    assert [(each.line, each.name) for each in called.possible] == [(10, "sorted")]
    assert ("a.outer.run", "a.outer.run", "flow") in made.edges(), (
        "the outer decorator gets the inner one's result"
    )


def test_a_class_has_what_it_inherits(project: Make) -> None:
    made = project(
        {
            "base.py": "class Thread:\n    def start(self): ...\n    def stop(self): ...\n",
            "work.py": "from base import Thread\nclass Worker(Thread):\n    def stop(self): ...\n"
            "class Fast(Worker): ...\ndef run(fast: Fast):\n    fast.start()\n",
            "app.ts": "class View { render() {} }\nclass Page extends View {}\nnew Page().render()\n",
        }
    )

    def named(name: str) -> list[str]:
        return [place.name for place in made.database.read_sync(lambda c: queries.find(c, made.id, name))]

    assert named("Fast.start") == named("work.Worker.start") == ["base.Thread.start"]
    assert named("Fast.stop") == ["work.Worker.stop"], "the nearest base"
    assert named("Page.render") == ["app.View.render"]
    found = made.database.read_sync(lambda c: queries.callers(c, made.id, "Fast.start"))
    assert [use.caller for use in found.confirmed] == ["work.run"]
    with pytest.raises(NotFoundError):
        named("Fast.pause")


def test_a_class_with_arguments_for_its_types_is_that_class(project: Make) -> None:
    source = """
from typing import Generic, TypeVar

T = TypeVar("T")

class Shelf(Generic[T]):
    def __init__(self): ...
    def first(self) -> T: ...

class Books(Shelf[str]):
    def title(self):
        return self.first()

def made():
    shelf = Shelf[int]()
    return shelf.first()
"""
    made = project({"shelf.py": source})
    assert {(caller, target) for caller, target, _ in made.edges("base")} == {("shelf", "shelf.Shelf")}
    assert {(caller, target) for caller, target, _ in made.edges()} == {
        ("shelf.Books.title", "shelf.Shelf.first"),
        ("shelf.made", "shelf.Shelf"),
        ("shelf.made", "shelf.Shelf.__init__"),
        ("shelf.made", "shelf.Shelf.first"),
    }
    below = made.database.read_sync(lambda c: queries.subclasses(c, made.id, "Shelf"))
    assert [each.name for each in below] == ["shelf.Books"]


def test_attributes_that_are_each_the_rest_of_the_other_end(project: Make) -> None:
    source = """
class Job:
    def run(self): ...

class Queue:
    def __init__(self):
        self.ready = [Job()]
        self.later = self.ready[1:]

    def shift(self):
        self.ready = self.later[1:]
        self.later = self.ready[1:]

    def next(self):
        self.ready[0].run()
"""
    assert ("queue.Queue.next", "queue.Job.run") in {
        (caller, target) for caller, target, _ in project({"queue.py": source}).edges()
    }
