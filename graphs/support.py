"""The order desk as a graph: asks for what it still needs, waits, acts on the shop, answers.

`graph` is compiled without a checkpointer, as the dev server and Studio want it: they bring their
own. `make_graph` compiles it with yours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from graphs.shop import TOOLS
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.graph.graph import build_waiting_graph
from langmem_ext.waiting.state import SessionInput, SessionState

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

    from langmem_ext.context.governor import ContextGovernor

    Graph: TypeAlias = CompiledStateGraph[SessionState, None, SessionInput, SessionState]

SUMMARIZE_ABOVE = 12
"""Messages kept out of the running summary: few, so that an example conversation shows it."""

catalog = IntentCatalog.from_yaml(Path(__file__).with_name("intents.yaml"))


def make_graph(
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    *,
    model: BaseChatModel | str | None = None,
    governor: ContextGovernor | None = None,
) -> Graph:
    """The order desk, compiled with `checkpointer`.

    Args:
        checkpointer: Where its threads are stored; None where a server brings its own.
        model: A chat model, or its name for `init_chat_model`, that classifies what the rules leave
            open.
        governor: Has its model write the running summary; without one it is an extract.
    """
    builder = build_waiting_graph(
        catalog, TOOLS, model=model, summarize_above=SUMMARIZE_ABOVE, governor=governor
    )
    return builder.compile(checkpointer=checkpointer, name="support")


graph = make_graph()
