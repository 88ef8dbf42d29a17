"""The example order desk, wherever it is installed: for `langmem-ext chat` and the notebooks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langmem_ext.errors import InvalidInput

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

_HERE = Path(__file__).parent
_FOLDERS = (_HERE, _HERE.parents[1])
"""Where the example's folder `graphs` is: in an installed package, and in a checkout."""


def make_graph(
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The order desk, compiled with a checkpointer.

    Args:
        checkpointer: Where its threads are stored; None where a server brings its own.

    Raises:
        InvalidInput: The package was installed without the example.
    """
    find()
    graph: CompiledStateGraph[Any, Any, Any, Any] = import_module("graphs.support").make_graph(
        checkpointer
    )
    return graph


def keep_shop_beside(database: str) -> None:
    """Have the order desk's shop lie beside its conversations' database.

    Args:
        database: The path or URL of the conversations' database.

    Raises:
        InvalidInput: The package was installed without the example.
    """
    find()
    import_module("graphs.shop").keep_beside(database)


def find() -> None:
    """Let the example's modules be imported, as `graphs`.

    Raises:
        InvalidInput: The package was installed without the example.
    """
    folder = next(
        (folder for folder in _FOLDERS if (folder / "graphs" / "support.py").is_file()), None
    )
    if folder is None:
        raise InvalidInput(
            "the example graph is not installed here: name a graph of yours with --graph"
            " file.py:attribute"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
