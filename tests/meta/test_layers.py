"""Imports point down only, LangGraph stays at the edges, and what decides does no I/O.

The rules are functions from parsed modules to sentences about what breaks them; the tree must give
none, an invented bad tree one each.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
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

LANGGRAPH_MODULES = {
    "log.codec": "the serializer's protocol",
    "log.extract": "packs as its serializer does",
    "log.restore": "the default serializer",
    "log.scope": "the serializer's protocol; ids and the format number of a checkpoint",
    "checkpointer": "is the checkpointer, and reads LangGraph's checkpoints as plain values",
    "maintenance.row_reader": "the serializer's protocol",
    "maintenance.doctor": "the serializer's protocol",
    "maintenance.statistics": "measures what LangGraph's serializer makes of a message",
    "maintenance.import_sqlite": "the serializer's protocol",
    "maintenance.transcoding": "reads other checkpointers",
    "maintenance.verification": "reads other checkpointers",
    "maintenance.saver_calls": "calls other checkpointers",
    "maintenance.copy": "reads other checkpointers",
    "store": "is a store",
    "example": "its graph, and what that is compiled with",
    "threads.states.held": "tells which of a step's questions have their answers",
    "threads.states.rewind": "reads and replaces what a step's tasks were answered",
    "threads.states.snapshot": "reads its checkpoints as a graph does",
    "threads.states.states": "gives its snapshots",
    "threads.states.taken": "rehearses what a graph does with a value",
    "threads.session.channels": "reads what a graph was about to do",
    "waiting.graph.nodes": "its nodes let interrupts pass",
    "waiting.interrupts.ask": "interrupts",
    "waiting.graph.graph": "builds the graph",
    "waiting.converse": "drives the graph",
    "waiting.middleware": "is a middleware",
    "waiting.state": "the reducer of the messages channel",
    "waiting.turn": "reads a turn from a snapshot",
    "waiting.graph.events": "writes to its stream",
    "_internal.models": "makes a chat model from its name",
    "context.summary.model_call": "tells a graph's stream what is done",
    "context.governor": "is a node",
    "context.tool_output.reader": "is a tool that reads a graph's state",
    "context.middleware": "is a middleware",
    "memory.items": "a store's protocol",
    "memory.memories": "a store's protocol",
    "memory.generator": "a store's protocol",
    "memory.facts": "a store's protocol, and tools that read a graph's state",
    "memory.prompts.middleware": "is a middleware",
    "memory.prompts.versions": "a store's protocol",
    "cli": "runs graphs",
    "server": "runs graphs",
    "inspector": "reads checkpointers, runs graphs",
    "notebook": "draws a history",
    "mcp_server": "runs a graph",
}
"""Where LangGraph and LangChain's agents may be imported; a package stands for all of its
modules."""

FRAMEWORKS = frozenset({"langgraph", "langchain"})

STANDARD_LIBRARY_ONLY = frozenset({"errors", "types", "telemetry", "storage"})
NEEDS_A_DRIVER = {
    "storage.postgres": frozenset({"psycopg", "psycopg_pool"}),
    "telemetry.opentelemetry": frozenset({"opentelemetry"}),
}

OPTIONAL = frozenset({"settings", "waiting", "_internal.yaml"})
"""Parts that can be imported only where an extra is installed: only the edges do, and these parts
themselves."""

EFFECTS = frozenset(
    {
        "context.summary.with_model",
        "context.summary.model_call",
        "context.configuration",
        "context.budget.counters",
        "context.governor",
        "context.middleware",
        "context.cut.request_cache",
        "waiting.graph.answerer",
        "waiting.converse",
        "waiting.middleware",
        "waiting.graph.nodes",
        "waiting.time_zone",
        "waiting.understand.intents.meaning",
        "waiting.understand.intents.model",
    }
)
"""Modules of `waiting` and `context` that carry out; the others decide, as does all of
`messages`."""

PURE = frozenset({"messages", "waiting", "context"})
IMPURE_MODULES = frozenset(
    {
        "asyncio",
        "concurrent",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "random",
        "secrets",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
    }
)
CLOCKS_AND_FILES = frozenset(
    {
        "now",
        "today",
        "utcnow",
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "uuid1",
        "uuid4",
    }
)


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
    line: int

    def __str__(self) -> str:
        target = f"{PACKAGE}.{self.target}".rstrip(".") if self.own else self.target
        return f"{shown(self.importer)}:{self.line} imports {target}"


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


def imports_of(modules: Mapping[str, ast.Module]) -> list[Import]:
    return [
        found
        for name, tree in modules.items()
        for found in _walk(name, tree, modules, for_types=False, lazy=False)
    ]


def _walk(
    name: str, node: ast.AST, modules: Mapping[str, ast.Module], *, for_types: bool, lazy: bool
) -> Iterator[Import]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for target in dict.fromkeys(_targets(name, node, modules)):
            own = target == PACKAGE or target.startswith(f"{PACKAGE}.")
            inside = target.removeprefix(PACKAGE).removeprefix(".") if own else target
            yield Import(name, inside, own, for_types, lazy, node.lineno)
        return
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    guarded = (
        node.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) else []
    )
    for child in ast.iter_child_nodes(node):
        yield from _walk(name, child, modules, for_types=for_types or child in guarded, lazy=lazy)


def _targets(
    name: str, node: ast.Import | ast.ImportFrom, modules: Mapping[str, ast.Module]
) -> Iterator[str]:
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


def without_a_place(modules: Mapping[str, ast.Module]) -> list[str]:
    return [f"{shown(name)} has no place in a layer" for name in modules if rank_of(name) is None]


def pointing_up(modules: Mapping[str, ast.Module]) -> list[str]:
    found = []
    for one in imports_of(modules):
        above, below = rank_of(one.importer), rank_of(one.target)
        if one.own and above is not None and below is not None and above > below:
            found.append(f"{one}, which stands above it")
    return found


def in_a_cycle(modules: Mapping[str, ast.Module]) -> list[str]:
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


def frameworks_out_of_place(modules: Mapping[str, ast.Module]) -> list[str]:
    return [
        str(one)
        for one in imports_of(modules)
        if not one.own
        and one.target.split(".")[0] in FRAMEWORKS
        and not covered(one.importer, LANGGRAPH_MODULES)
    ]


def foreign_out_of_place(modules: Mapping[str, ast.Module]) -> list[str]:
    """Packages of others where only the standard library may stand."""
    found = []
    for one in imports_of(modules):
        top = one.target.split(".")[0]
        if (
            one.own
            or top in sys.stdlib_module_names
            or not covered(one.importer, STANDARD_LIBRARY_ONLY)
        ):
            continue
        if not any(
            covered(one.importer, {home}) and top in packages
            for home, packages in NEEDS_A_DRIVER.items()
        ):
            found.append(str(one))
    return found


def not_declared(
    modules: Mapping[str, ast.Module], core: frozenset[str], extras: frozenset[str]
) -> list[str]:
    """Foreign packages that are no dependency; extras are allowed at edges and inside functions."""
    homes = packages_distributions()
    found = []
    for one in imports_of(modules):
        top = one.target.split(".")[0]
        if one.own or top in sys.stdlib_module_names:
            continue
        names = {_normal(name) for name in homes.get(top, [top])}
        at_the_edge = (
            one.lazy
            or one.for_types
            or rank_of(one.importer) == 0
            or one.importer.endswith(".middleware")
        )
        if not names & core and not (
            names & extras
            and (at_the_edge or covered(one.importer, OPTIONAL | NEEDS_A_DRIVER.keys()))
        ):
            found.append(f"{one}, of no dependency that is always installed")
    return found


def optional_in_the_core(modules: Mapping[str, ast.Module]) -> list[str]:
    """Optional parts where the package must do without them."""
    return [
        f"{one}, which is not always there"
        for one in imports_of(modules)
        if one.own
        and covered(one.target, OPTIONAL)
        and not (covered(one.importer, OPTIONAL) or one.for_types or rank_of(one.importer) == 0)
    ]


def impure(modules: Mapping[str, ast.Module]) -> list[str]:
    """Clocks, randomness and I/O in modules that decide."""
    deciding = {
        name: tree for name, tree in modules.items() if covered(name, PURE) and name not in EFFECTS
    }
    found = [
        str(one)
        for one in imports_of(deciding)
        if not one.own and one.target.split(".")[0] in IMPURE_MODULES
    ]
    for name, tree in deciding.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (word := _called(node.func)) in CLOCKS_AND_FILES:
                found.append(f"{shown(name)}:{node.lineno} calls {word}")
    return found


def _called(function: ast.expr) -> str:
    return (
        function.attr
        if isinstance(function, ast.Attribute)
        else function.id
        if isinstance(function, ast.Name)
        else ""
    )


def dependencies() -> tuple[frozenset[str], frozenset[str]]:
    """The distributions that are always installed, and those of the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [entry for entries in project["optional-dependencies"].values() for entry in entries]
    return frozenset(map(_normal, project["dependencies"])), frozenset(map(_normal, extras))


def _normal(requirement: str) -> str:
    name = "".join(
        char if char.isalnum() or char in "-_." else " " for char in requirement
    ).split()[0]
    return name.lower().replace("_", "-").replace(".", "-")


# -- the tree --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return modules_of(ROOT / PACKAGE)


def test_every_module_has_a_place_in_a_layer(modules: dict[str, ast.Module]) -> None:
    assert {
        "",
        "log.codec",
        "storage.sqlite.driver",
        "waiting.extract.dates.date",
    } <= modules.keys()
    assert without_a_place(modules) == []


def test_dependencies_point_down_only(modules: dict[str, ast.Module]) -> None:
    assert pointing_up(modules) == []


def test_no_module_imports_itself_through_others(modules: dict[str, ast.Module]) -> None:
    assert in_a_cycle(modules) == []


def test_langgraph_and_agents_are_imported_only_where_they_are_needed(
    modules: dict[str, ast.Module],
) -> None:
    assert frameworks_out_of_place(modules) == []


def test_storage_and_the_ground_need_the_standard_library_alone(
    modules: dict[str, ast.Module],
) -> None:
    assert foreign_out_of_place(modules) == []


def test_other_packages_are_declared_dependencies(modules: dict[str, ast.Module]) -> None:
    assert not_declared(modules, *dependencies()) == []


def test_only_the_edges_need_what_is_optional(modules: dict[str, ast.Module]) -> None:
    assert optional_in_the_core(modules) == []


def test_what_decides_reads_no_clock_no_chance_and_no_file(modules: dict[str, ast.Module]) -> None:
    assert impure(modules) == []


def test_every_exception_is_still_needed(modules: dict[str, ast.Module]) -> None:
    assert modules.keys() >= EFFECTS | OPTIONAL | NEEDS_A_DRIVER.keys() | LANGGRAPH_MODULES.keys()


# -- the rules themselves --------------------------------------------------------------------------


def tree(**sources: str) -> dict[str, ast.Module]:
    """Modules from sources; `__` in a name means a dot, `package` the package itself."""
    return {
        ("" if name == "package" else name.replace("__", ".")): ast.parse(source)
        for name, source in sources.items()
    }


GUARD = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        (without_a_place, tree(oddments="")),
        (pointing_up, tree(log="from langmem_ext.checkpointer import DeltaSaver", checkpointer="")),
        (pointing_up, tree(log="from langmem_ext import checkpointer", checkpointer="")),
        (pointing_up, tree(storage="", storage__driver="from ..log import MessageLog", log="")),
        (
            pointing_up,
            tree(
                messages="",
                messages__text="def f():\n    import langmem_ext.storage.driver",
                storage__driver="",
            ),
        ),
        (
            pointing_up,
            tree(
                log__codec=GUARD + "from langmem_ext.checkpointer import DeltaSaver",
                checkpointer="",
            ),
        ),
        (pointing_up, tree(package="", log="import langmem_ext")),
        (
            in_a_cycle,
            tree(
                log__codec="from langmem_ext.log.restore import a",
                log__restore="from langmem_ext.log.codec import b",
            ),
        ),
        (
            in_a_cycle,
            tree(
                waiting="",
                waiting__plan="from . import answer",
                waiting__answer="from .plan import start",
            ),
        ),
        (frameworks_out_of_place, tree(waiting__plan="from langgraph.types import interrupt")),
        (frameworks_out_of_place, tree(storage__sqlite="import langgraph")),
        (
            frameworks_out_of_place,
            tree(history="def f():\n    from langchain.agents import create_agent"),
        ),
        (foreign_out_of_place, tree(storage__header="import ormsgpack")),
        (foreign_out_of_place, tree(storage__sqlite="import psycopg")),
        (foreign_out_of_place, tree(errors="from langchain_core.messages import BaseMessage")),
        (
            optional_in_the_core,
            tree(
                log="def f():\n    from langmem_ext.settings.model import Settings",
                settings="",
                settings__model="",
            ),
        ),
        (impure, tree(messages__text="import random")),
        (impure, tree(waiting__plan="from datetime import datetime\nWHEN = datetime.now()")),
        (impure, tree(waiting__extract__names__name="WORDS = open('names.txt')")),
    ],
)
def test_a_rule_finds_what_breaks_it(rule: object, bad: dict[str, ast.Module]) -> None:
    assert callable(rule)
    assert len(rule(bad)) == 1


def test_a_package_of_an_extra_is_found_where_it_is_imported_at_once() -> None:
    core, extras = frozenset({"pydantic"}), frozenset({"typer"})
    bad = tree(
        log="import typer\nimport somebodys_package\nimport pydantic",
        cli="import typer",
        settings="import typer",
    )
    found = not_declared(bad, core, extras)
    assert [line.split(",")[0] for line in found] == [
        "langmem_ext.log:1 imports typer",
        "langmem_ext.log:2 imports somebodys_package",
    ]


def test_not_even_a_type_is_named_from_above() -> None:
    bad = tree(
        log__message_log=GUARD + "from langmem_ext.checkpointer.saver import DeltaSaver",
        checkpointer__saver="",
    )
    assert len(pointing_up(bad)) == 1
    assert in_a_cycle(bad) == []
