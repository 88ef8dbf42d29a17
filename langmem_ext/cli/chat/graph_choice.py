"""The graph that a chat talks to: the example order desk, or one that the user names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from langmem_ext import example
from langmem_ext._internal.models import make_model
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.cli.attribute import load
from langmem_ext.cli.errors import in_a_line
from langmem_ext.context.governor import ContextGovernor
from langmem_ext.errors import InvalidInput, LangmemExtError

EXAMPLE = "graphs.support:make_graph"


Graph: TypeAlias = Pregel[Any, Any, Any, Any]


def choose_graph(
    name: str | None, model: str | None, governor: Callable[[], ContextGovernor] | None = None
) -> Callable[[DeltaSaver], Graph]:
    """Find the graph that `name` names, or the example if None.

    The result compiles it with a saver.

    Args:
        name: `file.py:attribute` or `module:attribute`; modules are looked for in the current
            folder too.
        model: Name of a chat model to hand to the function that makes the graph.
        governor: Makes a governor for it, if it has a keyword `governor`.

    Raises:
        InvalidInput: Nothing of that name is a graph or makes one, or it takes no model.
        MissingExtra: The model needs an extra that is not installed.
        SettingsError: The governor cannot be made.
    """
    if name is None:
        example.find()
    name = name or EXAMPLE
    chosen = load(name, "--graph")
    if isinstance(chosen, Pregel | StateGraph):
        if model is not None:
            raise InvalidInput(
                f"{name} is a compiled graph and takes no model: omit --model, or name a function"
                " that builds the graph"
            )
        return lambda saver: _with_saver(chosen, saver)
    if not callable(chosen):
        raise InvalidInput(
            f"{name} is not a graph but {type(chosen).__name__}: name a graph, or a function that"
            " takes a checkpointer and returns a graph"
        )
    takes_governor = governor is not None and "governor" in inspect.signature(chosen).parameters
    _check_takes(
        name,
        chosen,
        [*([] if model is None else ["model"]), *(["governor"] if takes_governor else [])],
    )
    further: dict[str, Any] = {} if model is None else {"model": make_model(model)}
    if governor is not None and takes_governor:
        further["governor"] = governor()
    return lambda saver: _make(name, chosen, saver, further)


def _check_takes(name: str, function: Callable[..., Any], further: Sequence[str]) -> None:
    """Refuse a function that cannot be called with a checkpointer and these keywords."""
    try:
        inspect.signature(function).bind(None, **dict.fromkeys(further))
    except (TypeError, ValueError) as error:
        wanted = " and ".join(["a checkpointer", *(f"the keyword {word!r}" for word in further)])
        raise InvalidInput(f"{name} cannot be called with {wanted} ({error})") from error


def _make(
    name: str, function: Callable[..., Any], saver: DeltaSaver, further: Mapping[str, Any]
) -> Graph:
    try:
        made = function(saver, **further)
    except LangmemExtError:
        raise
    except Exception as error:  # whatever a function of the user's does
        raise InvalidInput(f"{name} failed to build a graph ({in_a_line(error)})") from error
    if not isinstance(made, Pregel | StateGraph):
        raise InvalidInput(f"{name} returned {type(made).__name__}, not a graph: return a graph")
    return _with_saver(made, saver)


def _with_saver(graph: Graph | StateGraph[Any, Any, Any, Any], saver: DeltaSaver) -> Graph:
    """The graph, storing its threads with `saver`, whatever it was compiled with."""
    compiled = graph.compile() if isinstance(graph, StateGraph) else graph
    return compiled.copy({"checkpointer": saver})
