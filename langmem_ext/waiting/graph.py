"""The waiting graph: asks for what a request still lacks, waits for days, and goes on where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph

from langmem_ext.errors import InvalidInput
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.events import Reporter
from langmem_ext.waiting.nodes import Nodes
from langmem_ext.waiting.state import SessionInput, SessionState
from langmem_ext.waiting.understand.intents.classifier import Classifier, RuleClassifier
from langmem_ext.waiting.understand.intents.model import ModelClassifier

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langmem_ext.context.governor import ContextGovernor

SUMMARIZE_ABOVE = 40
"""Messages kept out of the running summary."""


def build_waiting_graph(
    catalog: IntentCatalog,
    tools: Sequence[BaseTool],
    *,
    classifier: Classifier | None = None,
    model: BaseChatModel | str | None = None,
    summarize_above: int = SUMMARIZE_ABOVE,
    governor: ContextGovernor | None = None,
    telemetry: Sequence[Sink] = (),
) -> StateGraph[SessionState, None, SessionInput, SessionState]:
    """The graph for a catalog and its tools, not compiled: compile it with a checkpointer, or use it inside another graph.

    Its nodes are `classify`, `ask_user`, `call_tool`, `respond` and `summarize`; it is invoked with `{"messages": […]}` and driven best
    with `converse`. A tool that declares an injected argument `idempotency_key` is given a key that stays the same when a call is repeated
    after a crash, so it can see that its effect is there already.

    Args:
        catalog: What users can ask for; what it leaves out comes from the tools' own schemas.
        tools: The tools that the catalog names.
        classifier: Decides what a message asks for. Default: rules.
        model: A chat model, or its name for `init_chat_model`, that classifies what the rules leave open. Not together with `classifier`.
        summarize_above: Messages kept out of the running summary, which is carried on when there are more.
        governor: Has its model write the running summary; without one, or where the model fails, it is an extract.
        telemetry: Sinks that are told what happens, in names and counts: `LoggingSink`, `StreamSink`, `OpenTelemetrySink` or another.

    Raises:
        CatalogError: Catalog and tools do not fit: every mistake at once.
        InvalidInput: Both a classifier and a model were given, `summarize_above` is below 2, or something is no sink.
        MissingExtra: A model was named by a string and the extra `agents` is not installed.
    """
    if classifier is not None and model is not None:
        raise InvalidInput("give a classifier or a model, not both: a model is wrapped in a classifier of its own")
    if summarize_above < 2:
        raise InvalidInput(f"summarize_above is {summarize_above}: at least 2 messages stay out of the summary")
    chosen = classifier or (RuleClassifier() if model is None else ModelClassifier(model))
    playbook = Playbook(catalog, tools)
    reporter = Reporter(playbook, Emitter(telemetry))
    nodes = Nodes(playbook=playbook, classifier=chosen, summarize_above=summarize_above, reporter=reporter, governor=governor)
    graph = StateGraph(SessionState, input_schema=SessionInput)
    graph.add_node("classify", RunnableLambda(nodes.classify, nodes.aclassify, name="classify"))
    graph.add_node("ask_user", nodes.ask_user)
    graph.add_node("call_tool", RunnableLambda(nodes.call_tool, nodes.acall_tool, name="call_tool"))
    graph.add_node("respond", nodes.respond)
    graph.add_node("summarize", RunnableLambda(nodes.summarize, nodes.asummarize, name="summarize"))
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", nodes.after_classify, ["ask_user", "call_tool", "respond", "summarize", END])
    graph.add_edge("ask_user", "classify")
    graph.add_conditional_edges("call_tool", nodes.after_call, ["call_tool", "respond"])
    graph.add_conditional_edges("respond", nodes.after_respond, ["classify", "summarize", END])
    graph.add_edge("summarize", END)
    return graph
