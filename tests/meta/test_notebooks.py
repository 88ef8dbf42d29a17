"""Every notebook runs from its first cell to its last, offline, and shows what is stored in it.

It only uses the package, which is laid out as its wheel has it: a notebook that was downloaded runs
after `pip install`.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from patience import PATIENCE_S
from repository import ROOT

pytestmark = [pytest.mark.process, pytest.mark.interop]


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there: what asks the network for something fails."""


parametrized = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat is not typed


def code_of(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def shown_by(notebook: Any) -> str:
    """Everything that the cells printed or ended with."""
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    # What a cell prints may come in pieces that end within a line.
    return "".join(
        output["text"] if "text" in output else f"{output.get('data', '')}\n" for output in outputs
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it, as the wheel installs it."""
    site = tmp_path_factory.mktemp("site")
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"][
        "build"
    ]["targets"]["wheel"]
    folders = {name: name for name in wheel["packages"]} | wheel["force-include"]
    for name, place in folders.items():
        shutil.copytree(
            ROOT / name,
            site / place,
            ignore=shutil.ignore_patterns("__pycache__"),
            dirs_exist_ok=True,
        )
    return site


@pytest.fixture(scope="module")
def played(
    installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Path], Any]]:
    """Runs a notebook, once, and returns it with its outputs; a cell that raises fails the test."""
    folder = tmp_path_factory.mktemp("notebooks")

    @cache
    def play(path: Path) -> Any:
        return NotebookClient(
            read(path), timeout=int(PATIENCE_S), resources={"metadata": {"path": str(folder)}}
        ).execute()

    with pytest.MonkeyPatch.context() as environment:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            environment.setenv(name, NOWHERE)
            environment.setenv(name.upper(), NOWHERE)
        environment.setenv("LANGSMITH_TRACING", "false")
        environment.setenv("PYTHONPATH", str(installed))
        environment.setenv("IPYTHONDIR", str(folder / "ipython"))
        environment.setenv("TMPDIR", str(folder))
        yield play


def lasting(notebook: Any) -> list[Any]:
    """What a cell shows at each run: its text, and which kinds of pictures and tables."""
    shown = []
    for cell in notebook.cells:
        outputs = cell.outputs if cell.cell_type == "code" else []
        text = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
        kinds = sorted(kind for output in outputs for kind in output.get("data", {}))
        shown.append((text, kinds))
    return shown


@parametrized
def test_a_notebook_shows_what_is_stored_in_it(path: Path, played: Callable[[Path], Any]) -> None:
    notebook = played(path)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert lasting(notebook) == lasting(read(path))


@pytest.mark.parametrize("checkout", [False, True], ids=["installed", "checkout"])
def test_the_example_of_the_notebooks_is_the_packages_own(
    checkout: bool, installed: Path, tmp_path: Path
) -> None:
    where = ROOT if checkout else installed
    code = (
        "from langmem_ext.example import make_graph; print(make_graph().name); import graphs.shop;"
        " print(graphs.shop.__file__)"
    )
    environment = os.environ | {"PYTHONPATH": str(where)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    name, file = done.stdout.splitlines()
    assert name == "support"
    assert (
        Path(file)
        == (ROOT if checkout else installed / "langmem_ext" / "example") / "graphs" / "shop.py"
    )


def test_the_waiting_notebook_shows_an_answer_after_a_restart_and_a_fork(
    played: Callable[[Path], Any],
) -> None:
    said = shown_by(played(ROOT / "notebooks" / "02_waiting.ipynb"))
    assert "waits for: order_id" in said
    assert ">waits</text>" in said
    assert said.count("image/svg+xml") == 2
    assert "then: Order O-12345 is processing" in said
    assert "now:  Order O-12346 is shipped" in said


def test_the_context_notebook_shows_plans_as_tables_and_undoes_what_was_decided(
    played: Callable[[Path], Any],
) -> None:
    notebook = played(ROOT / "notebooks" / "03_context.ipynb")
    said = shown_by(notebook)
    assert said.count("stored messages: 60") == 2
    stable = re.search(r"(\d+) of 29 requests begin with the one before", said)
    assert stable is not None
    assert int(stable[1]) >= 26
    assert "messages sent: 60 of 60" in said
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output.get("data", {}).get("text/html") for output in outputs]
    tables = [table for table in shown if table]
    assert ["left out before" in table for table in tables] == [False, True, False, False]
    assert all("replaced by" in table or "trimmed" in table for table in tables)


@parametrized
def test_a_notebook_says_what_it_shows_and_defines_only_tools_and_a_scripted_model(
    path: Path,
) -> None:
    notebook = read(path)
    kinds = {kind for _, kinds in lasting(notebook) for kind in kinds}
    assert kinds & {"image/png", "image/svg+xml"}
    assert tempfile.gettempdir() not in shown_by(notebook), "no path of a machine"
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    code = [source for source in code_of(notebook) if not source.startswith("%load_ext")]
    assert sum(cell.cell_type == "markdown" for cell in notebook.cells) >= len(code) // 2
    nodes = [node for source in code for node in ast.parse(source).body]
    assert "from langmem_ext" in " ".join(map(ast.unparse, nodes))
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            assert node.name.startswith("Scripted") or decorators == ["tool"], node.name


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
