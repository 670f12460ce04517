"""The rules of docs/ARCHITECTURE.md over syntax trees: who may import whom, where SQL and model code may be.

:func:`violations` takes the root of a tree with the packages in it and returns one sentence a violation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

MAX_LINES = 400
MAX_MEDIAN_LINES = 150

# Units of the gateway, one folder each, by height: a unit imports only from lower units and from itself.
HEIGHTS: dict[str, int] = {
    "cli": 80,
    "server": 70,
    "api": 50,
    "evaluation": 50,
    "benchmarking": 50,
    "runs": 45,
    "ask": 40,
    "memory": 40,
    "wiki": 40,
    "code": 40,
    "telemetry": 30,
    "vectors": 25,
    "inference": 20,
    "store": 20,
    "models": 10,
    "config": 5,
    "base": 0,
}
# What one unit may see of another at the same height: values, never insides.
VALUES = {
    ("ask", "gateway.wiki.source"),
    ("ask", "gateway.wiki.sketch"),
    ("code", "gateway.wiki.source"),
}
MODEL_CODE = {
    "model_host.engine.load",
    "model_host.engine.weights",
    "model_host.engine.engine",
    "model_host.engine.adapters",
    "model_host.engine.merge",
    "model_host.engine.kv_state",
    "model_host.embedding.engine",
    "model_host.engine.sampling",
    "model_host.engine.constraint",
    "model_host.engine.vocabulary",
}
MODEL_LIBRARIES = {"llama_cpp", "numpy"}
OURS = {"gateway", "model_host", "clients"}
# The package is an extra: what imports it is imported when it is used.
MCP_CODE = {
    "gateway.api.mcp.server",
    "gateway.api.mcp.transport",
    "gateway.cli.mcp.bridge",
    "gateway.runs.tools.mcp_client",
}
POSTGRES_CODE = "gateway.store.postgres"
PYDLE_CODE = {"clients.irc.protocol.link", "clients.irc.protocol.connection"}
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA\s)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Import:
    """``module`` is a dotted name; ``local`` is inside a function. Imports for type checking alone count like all."""

    module: str
    line: int
    local: bool


@dataclass(frozen=True)
class Module:
    """One source file of a package."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def imports(self) -> list[Import]:
        """Every import anywhere in the file, relative ones made absolute."""
        return list(_imports(self, self.tree, local=False))


def _imports(module: Module, node: ast.AST, *, local: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            continue  # an expression holds no import
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, local)
        elif isinstance(child, ast.ImportFrom):
            base = _base(module, child)
            for alias in child.names:
                yield Import(f"{base}.{alias.name}", child.lineno, local)
        inside = local or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _imports(module, child, local=inside)


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.path.name == "__init__.py" else module.name.split(".")[:-1]
    kept = package[: len(package) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def modules(root: Path, package: str) -> list[Module]:
    """All source files of a package; empty when there is none."""
    found = []
    for path in sorted((root / package).rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, path, text, ast.parse(text)))
    return found


def missing(root: Path) -> list[str]:
    """Units and modules that the rules name, and that do not exist."""
    units = {f"gateway.{unit}" for unit in HEIGHTS}
    modules_named = {*units, *MODEL_CODE, *MCP_CODE, *PYDLE_CODE, *(value for _, value in VALUES)}
    there = {module.name for package in sorted(OURS) for module in modules(root, package)}
    return sorted(modules_named - there)


def violations(root: Path) -> list[str]:
    """Every broken rule, as ``file:line: what``."""
    gateway, host = modules(root, "gateway"), modules(root, "model_host")
    clients = modules(root, "clients")
    problems = []
    for module in gateway:
        problems += [*_gateway_imports(module), *_sql(module)]
    for module in host:
        problems += _host_imports(module)
    for module in clients:
        problems += _client_imports(module)
    for module in [*gateway, *host, *clients]:
        problems += [*_local_imports(module), *_size(module)]
    problems += _cycles([*gateway, *host, *clients])
    lengths = [module.text.count("\n") for module in [*gateway, *host, *clients]]
    if lengths and median(lengths) > MAX_MEDIAN_LINES:
        problems.append(f"half of all files have more than {MAX_MEDIAN_LINES} lines: {median(lengths)}")
    return problems


def _gateway_imports(module: Module) -> Iterator[str]:
    ours = _unit(module.name)
    if ours and ours not in HEIGHTS:
        yield _at(module, 1, f"`{ours}` has no place in tests/layering.py: give it one")
        return
    for each in module.imports:
        top = each.module.split(".")[0]
        if top in MODEL_LIBRARIES:
            yield _at(module, each.line, f"the gateway imports {top}")
        elif top == "model_host" and not _protocol(each.module):
            yield _at(module, each.line, f"the gateway imports {each.module}, not model_host.protocol alone")
        elif top in {"mcp", "mcp_types"} and module.name not in MCP_CODE:
            yield _at(module, each.line, f"only {', '.join(sorted(MCP_CODE))} know mcp")
        elif top == "psycopg" and not module.name.startswith(POSTGRES_CODE):
            yield _at(module, each.line, f"only {POSTGRES_CODE} knows psycopg")
        elif top == "clients":
            yield _at(module, each.line, "the gateway imports a client")
        elif top == "gateway" and not _downwards(ours, each.module):
            yield _at(module, each.line, f"`{ours}` imports {each.module}, which is not below it")


def _protocol(module: str) -> bool:
    return module == "model_host.protocol" or module.startswith("model_host.protocol.")


def _downwards(ours: str, target: str) -> bool:
    theirs = _unit(target)
    if theirs == ours or any(ours == unit and target.startswith(value) for unit, value in VALUES):
        return True
    if theirs not in HEIGHTS:  # `from gateway import __version__`
        return not theirs or theirs.startswith("__")
    return bool(ours) and HEIGHTS[ours] > HEIGHTS[theirs]


def _unit(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def _host_imports(module: Module) -> Iterator[str]:
    for each in module.imports:
        top = each.module.split(".")[0]
        if top in {"gateway", "clients"}:
            yield _at(module, each.line, f"the model host imports {each.module}")
        elif top in MODEL_LIBRARIES and module.name not in MODEL_CODE:
            yield _at(
                module, each.line, f"{module.name} imports {top}; only {', '.join(sorted(MODEL_CODE))} may"
            )
        elif _inside(each.module, MODEL_CODE) and module.name not in {
            *MODEL_CODE,
            "model_host.host",
            "model_host.embedding.host",
            "model_host.preparer",
            "model_host.__main__",
        }:
            yield _at(module, each.line, f"{module.name} imports model code: {each.module}")


def _client_imports(module: Module) -> Iterator[str]:
    for each in module.imports:
        if each.module.split(".")[0] in {"gateway", "model_host"}:
            yield _at(module, each.line, f"a client imports {each.module}: it has HTTP")
        elif each.module.split(".")[0] == "pydle" and module.name not in PYDLE_CODE:
            yield _at(module, each.line, f"only {', '.join(sorted(PYDLE_CODE))} know pydle")


def _local_imports(module: Module) -> Iterator[str]:
    lines = module.text.splitlines()
    for each in module.imports:
        if not each.local or each.module.split(".")[0] not in OURS:
            continue
        # A comment covers the imports that follow it without a break.
        at = each.line - 1
        while at > 0 and "#" not in lines[at] and lines[at].lstrip().startswith(("from ", "import ")):
            at -= 1
        if "#" not in lines[at]:
            yield _at(
                module, each.line, f"{each.module} is imported inside a function, and no comment says why"
            )


def _sql(module: Module) -> Iterator[str]:
    if _unit(module.name) == "store":
        return
    nodes = list(ast.walk(module.tree))
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and SQL.search(node.value)
        ):
            yield _at(module, node.lineno, "SQL outside gateway/store")
        if isinstance(node, ast.Attribute) and node.attr in {"execute", "executemany"}:
            yield _at(module, node.lineno, "statements run in gateway/store only")


def _size(module: Module) -> Iterator[str]:
    lines = module.text.count("\n")
    if lines > MAX_LINES:
        yield _at(module, 1, f"{lines} lines, over the limit of {MAX_LINES}")


def _cycles(found: list[Module]) -> Iterator[str]:
    """Import cycles between files, imports inside functions and those for type checking included."""
    names = {module.name for module in found}
    graph: dict[str, set[str]] = {}
    for module in found:
        used = {_file(each.module, names) for each in module.imports}
        # Python itself runs a package's __init__, for every import of its modules.
        graph[module.name] = {
            name for name in used if name and name != module.name and not module.name.startswith(f"{name}.")
        }
    done: set[str] = set()
    for start in sorted(graph):
        cycle = _cycle_from(start, graph, [], done)
        if cycle:
            yield f"import cycle: {' -> '.join(cycle)}"
            return


def _cycle_from(name: str, graph: dict[str, set[str]], trail: list[str], done: set[str]) -> list[str] | None:
    if name in trail:
        return [*trail[trail.index(name) :], name]
    if name in done:
        return None
    for target in sorted(graph.get(name, ())):
        cycle = _cycle_from(target, graph, [*trail, name], done)
        if cycle:
            return cycle
    done.add(name)
    return None


def _file(dotted: str, names: set[str]) -> str | None:
    return dotted if dotted in names else next((n for n in [dotted.rpartition(".")[0]] if n in names), None)


def _inside(dotted: str, owners: set[str]) -> bool:
    return any(dotted == owner or dotted.startswith(f"{owner}.") for owner in owners)


def _at(module: Module, line: int, what: str) -> str:
    return f"{module.path}:{line}: {what}"
