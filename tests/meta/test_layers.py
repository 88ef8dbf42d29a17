"""Imports point down only, LangGraph stays at the edges, and what decides does no I/O.

The rules are functions from parsed modules to sentences about what breaks them; the tree must give
none, an invented bad tree one each.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import ROOT

PACKAGE = "langmem_ext"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli", "server", "inspector", "mcp_server", "notebook", "example"),
    ("",),  # the package itself: its public names
    ("waiting", "context", "memory"),
    ("threads",),
    ("maintenance",),
    ("checkpointer", "store"),
    ("log",),
    ("storage",),
    ("messages",),
    ("errors", "types", "_internal", "settings", "telemetry"),
)
"""From the top. A module of a layer may import its own layer, without cycles, and those below."""

FRAMEWORKS = frozenset({"langgraph", "langchain"})

FREE_OF_FRAMEWORKS = frozenset(
    {
        *("errors", "types", "settings", "telemetry", "messages", "storage"),
        *("waiting.catalog", "waiting.extract", "waiting.policy", "waiting.understand"),
        *("context.budget", "context.cut", "context.govern", "context.policy", "context.repair"),
        *("memory.schema", "memory.selection", "threads.export", "threads.search"),
    }
)
"""Where neither LangGraph nor LangChain's agents are imported."""

STANDARD_LIBRARY_ONLY = frozenset({"errors", "types", "telemetry", "storage"})
NEEDS_A_DRIVER = {
    "storage.postgres": frozenset({"psycopg", "psycopg_pool"}),
    "telemetry.opentelemetry": frozenset({"opentelemetry"}),
}

OPTIONAL = frozenset({"settings", "waiting", "_internal.yaml"})
"""Parts that can be imported only where an extra is installed: only the edges do, and these parts
themselves."""

PURE = frozenset(
    {
        *("messages", "context.decisions", "context.govern", "context.policy", "context.repair"),
        *("waiting.catalog", "waiting.extract", "waiting.interrupts", "waiting.policy"),
        *("waiting.sensitive", "waiting.state", "waiting.turn"),
    }
)
"""What decides, and leaves clocks, chance and files to others."""

IMPURE_MODULES = frozenset(
    {
        *("asyncio", "concurrent", "io", "logging", "multiprocessing", "os", "random", "secrets"),
        *("shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time"),
    }
)
CLOCKS_AND_FILES = frozenset(
    {
        *("now", "today", "utcnow", "open", "uuid1", "uuid4"),
        *("read_text", "read_bytes", "write_text", "write_bytes"),
    }
)

Modules = Mapping[str, ast.Module]
Rule = Callable[[Modules], list[str]]


@dataclass(frozen=True, slots=True)
class Import:
    """One import: who imports what, by names inside the package or of another package.

    Inside, `waiting.plan` names a module and "" the package itself.
    """

    importer: str
    target: str
    own: bool
    for_types: bool
    lazy: bool

    def __str__(self) -> str:
        return f"{shown(self.importer)} imports {shown(self.target) if self.own else self.target}"

    @property
    def top(self) -> str:
        """The package that is imported from."""
        return self.target.split(".")[0]

    @property
    def foreign(self) -> bool:
        """Whether it is of neither this package nor the standard library."""
        return not self.own and self.top not in sys.stdlib_module_names


def shown(module: str) -> str:
    return f"{PACKAGE}.{module}".rstrip(".")


def modules_of(folder: Path) -> dict[str, ast.Module]:
    """Every module below `folder`, parsed, by its name inside the package."""
    parsed = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        parsed[name] = ast.parse(path.read_text(encoding="utf-8"))
    return parsed


def imports_of(modules: Modules) -> Iterator[Import]:
    for name, tree in modules.items():
        yield from _walk(name, tree, modules, for_types=False, lazy=False)


def _walk(
    name: str, node: ast.AST, modules: Modules, *, for_types: bool, lazy: bool
) -> Iterator[Import]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for target in dict.fromkeys(_targets(name, node, modules)):
            own = target == PACKAGE or target.startswith(f"{PACKAGE}.")
            inside = target.removeprefix(PACKAGE).removeprefix(".") if own else target
            yield Import(name, inside, own, for_types, lazy)
        return
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    guarded = (
        node.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) else []
    )
    for child in ast.iter_child_nodes(node):
        yield from _walk(name, child, modules, for_types=for_types or child in guarded, lazy=lazy)


def _targets(name: str, node: ast.Import | ast.ImportFrom, modules: Modules) -> Iterator[str]:
    """The modules a statement imports: `from a import b` imports `a.b` if that is one, else `a`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        is_package = any(other.startswith(f"{name}.") for other in modules) or not name
        parts = shown(name).split(".")
        kept = parts[: len(parts) - node.level + is_package]
        base = ".".join([*kept, *([base] if base else [])])
    inside = base.removeprefix(PACKAGE).removeprefix(".")
    for alias in node.names:
        member = f"{inside}.{alias.name}".lstrip(".")
        yield f"{PACKAGE}.{member}" if base.split(".")[0] == PACKAGE and member in modules else base


def rank_of(module: str) -> int | None:
    """How far down the module stands; None for one that has no place."""
    top = module.split(".")[0]
    return next((rank for rank, layer in enumerate(LAYERS) if top in layer), None)


def covered(module: str, by: Mapping[str, object] | frozenset[str]) -> bool:
    """Whether the module, or a package that it is in, is named."""
    parts = module.split(".")
    return any(".".join(parts[: end + 1]) in by for end in range(len(parts)))


# -- the rules -------------------------------------------------------------------------------------


def without_a_place(modules: Modules) -> list[str]:
    return [f"{shown(name)} has no place in a layer" for name in modules if rank_of(name) is None]


def pointing_up(modules: Modules) -> list[str]:
    found = []
    for one in imports_of(modules):
        above, below = rank_of(one.importer), rank_of(one.target)
        if one.own and above is not None and below is not None and above > below:
            found.append(f"{one}, which stands above it")
    return found


def in_a_cycle(modules: Modules) -> list[str]:
    """The first cycle among runtime imports; those inside an `__init__` count for its package."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for one in imports_of(modules):
        if one.own and not one.for_types and one.target != one.importer:
            graph[one.importer].add(one.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" imports ".join(shown(name) for name in reversed(error.args[1]))]
    return []


def frameworks_out_of_place(modules: Modules) -> list[str]:
    return [
        str(one)
        for one in imports_of(modules)
        if not one.own and one.top in FRAMEWORKS and covered(one.importer, FREE_OF_FRAMEWORKS)
    ]


def foreign_out_of_place(modules: Modules) -> list[str]:
    """Packages of others where only the standard library may stand."""
    return [
        str(one)
        for one in imports_of(modules)
        if one.foreign
        and covered(one.importer, STANDARD_LIBRARY_ONLY)
        and not any(
            covered(one.importer, frozenset({home})) and one.top in packages
            for home, packages in NEEDS_A_DRIVER.items()
        )
    ]


def not_declared(modules: Modules) -> list[str]:
    """Foreign packages that are no dependency; extras are allowed at edges and inside functions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = [text for texts in project["optional-dependencies"].values() for text in texts]
    core, extras = (
        {canonicalize_name(Requirement(text).name) for text in texts}
        for texts in (project["dependencies"], optional)
    )
    homes = packages_distributions()
    found = []
    for one in imports_of(modules):
        names = {canonicalize_name(name) for name in homes.get(one.top, [one.top])}
        at_the_edge = (
            one.lazy
            or one.for_types
            or rank_of(one.importer) == 0
            or one.importer.endswith(".middleware")
            or covered(one.importer, OPTIONAL | NEEDS_A_DRIVER.keys())
        )
        if one.foreign and not names & core and not (names & extras and at_the_edge):
            found.append(f"{one}, of no dependency that is always installed")
    return found


def optional_in_the_core(modules: Modules) -> list[str]:
    """Optional parts where the package must do without them."""
    return [
        f"{one}, which is not always there"
        for one in imports_of(modules)
        if one.own
        and covered(one.target, OPTIONAL)
        and not (covered(one.importer, OPTIONAL) or one.for_types or rank_of(one.importer) == 0)
    ]


def impure(modules: Modules) -> list[str]:
    """Clocks, randomness and I/O in modules that decide."""
    deciding = {name: tree for name, tree in modules.items() if covered(name, PURE)}
    found = [
        str(one)
        for one in imports_of(deciding)
        if not one.own and one.target.split(".")[0] in IMPURE_MODULES
    ]
    for name, tree in deciding.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node.func) in CLOCKS_AND_FILES:
                found.append(f"{shown(name)}:{node.lineno} calls {_called(node.func)}")
    return found


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def tree(**sources: str) -> dict[str, ast.Module]:
    """Modules from sources; `__` in a name means a dot, `package` the package itself."""
    return {
        ("" if name == "package" else name.replace("__", ".")): ast.parse(source)
        for name, source in sources.items()
    }


GUARD = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "
IN_A_FUNCTION = "def f():\n    "

RULES: dict[Rule, list[dict[str, ast.Module]]] = {
    without_a_place: [tree(oddments="")],
    pointing_up: [
        tree(log="from langmem_ext.checkpointer import DeltaSaver", checkpointer=""),
        tree(log="from langmem_ext import checkpointer", checkpointer=""),
        tree(storage="", storage__driver="from ..log import MessageLog", log=""),
        tree(messages__text=IN_A_FUNCTION + "import langmem_ext.storage.x", storage__x=""),
        tree(log=GUARD + "from langmem_ext.checkpointer import DeltaSaver", checkpointer=""),
        tree(package="", log="import langmem_ext"),
    ],
    in_a_cycle: [
        tree(log__a="from langmem_ext.log.b import c", log__b="from langmem_ext.log.a import d"),
        tree(waiting="", waiting__a="from . import b", waiting__b="from .a import start"),
    ],
    frameworks_out_of_place: [
        tree(waiting__understand="from langgraph.types import interrupt"),
        tree(storage__sqlite="import langgraph"),
        tree(context__cut=IN_A_FUNCTION + "from langchain.agents import create_agent"),
    ],
    foreign_out_of_place: [
        tree(storage__header="import ormsgpack"),
        tree(storage__sqlite="import psycopg"),
        tree(errors="from langchain_core.messages import BaseMessage"),
    ],
    not_declared: [
        tree(log="import typer\nimport ormsgpack", cli="import typer", settings="import yaml"),
        tree(log="import somebodys_package"),
    ],
    optional_in_the_core: [
        tree(log=IN_A_FUNCTION + "from langmem_ext.settings.model import S", settings__model="")
    ],
    impure: [
        tree(messages__text="import random"),
        tree(waiting__policy="from datetime import datetime\nWHEN = datetime.now()"),
        tree(waiting__extract__names__name="WORDS = open('names.txt')"),
    ],
}
"""Each rule, and invented trees of which each breaks it once."""


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return modules_of(ROOT / PACKAGE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_a_rule_that_finds_what_breaks_it(
    rule: Rule, modules: dict[str, ast.Module]
) -> None:
    for bad in RULES[rule]:
        assert len(rule(bad)) == 1
    assert rule(modules) == []


def test_every_name_in_the_rules_is_a_module(modules: dict[str, ast.Module]) -> None:
    named = FREE_OF_FRAMEWORKS | STANDARD_LIBRARY_ONLY | NEEDS_A_DRIVER.keys() | OPTIONAL | PURE
    assert named <= modules.keys()
