"""The waiting graph: asks for what a request lacks, waits for days, and continues."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_type_hints

from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict, is_typeddict

from langmem_ext._internal.names import instead_of
from langmem_ext.errors import InvalidInput
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Extensions, Extractor, Normaliser, Validator
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.graph.answerer import Answerer, FunctionAnswerer, ModelAnswerer
from langmem_ext.waiting.graph.events import Reporter
from langmem_ext.waiting.graph.nodes import Nodes
from langmem_ext.waiting.policy.user_questions import Answer
from langmem_ext.waiting.state import SessionInput, SessionState
from langmem_ext.waiting.understand.intents.classifier import Classifier, RuleClassifier
from langmem_ext.waiting.understand.intents.model import ModelClassifier

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langmem_ext.context.governor import ContextGovernor

SUMMARIZE_ABOVE = 40
"""Messages kept out of the running summary."""

NODES: Final = ("classify", "ask_user", "call_tool", "respond", "summarize")

Node: TypeAlias = Runnable[Any, Any] | Callable[..., Any]
"""A node as LangGraph takes it: a function of the state, sync or async, or a runnable like a
compiled graph. It gives back what it changes in the channels."""


def build_waiting_graph(
    catalog: IntentCatalog,
    tools: Sequence[BaseTool],
    *,
    classifier: Classifier | None = None,
    model: BaseChatModel | str | None = None,
    extractors: Mapping[str, Extractor] | None = None,
    validators: Mapping[str, Validator] | None = None,
    normalisers: Mapping[str, Normaliser] | None = None,
    answer: Answer | None = None,
    state_schema: type[Any] = SessionState,
    nodes: Mapping[str, Node] | None = None,
    before: Mapping[str, Node] | None = None,
    summarize_above: int = SUMMARIZE_ABOVE,
    governor: ContextGovernor | None = None,
    telemetry: Sequence[Sink] = (),
) -> StateGraph[Any, None, Any, Any]:
    """The graph for a catalog and its tools, not compiled.

    Compile it with a checkpointer, or use it inside another graph.

    Its nodes are `classify`, `ask_user`, `call_tool`, `respond` and `summarize`; it is invoked with
    `{"messages": […]}` and driven best with `converse`. A tool that declares an injected argument
    `idempotency_key` is given a key that stays the same when a call is repeated after a crash, so
    it can see that its effect is there already.

    Args:
        catalog: What users can ask for; what it leaves out comes from the tools' own schemas.
        tools: The tools that the catalog names.
        classifier: Decides which intent a message asks for. Default: rules.
        model: A chat model, or its name for `init_chat_model`, for what the rules cannot decide.
            Not together with `classifier`.
        extractors: Your own types, by the names that parameters use as their `type`. Each yields
            the values of a reply: `read(param, reply)` yields an `Extraction("filled", value,
            span=…)`.
        validators: Functions for the `validator` of parameters: `check(value)` returns what is
            wrong, or None.
        normalisers: Functions for the `normaliser` of parameters: each converts a value to its
            stored form, or raises ValueError if it is invalid.
        answer: Answers questions of the user: it gets an `AskedQuestion` and returns the reply, or
            None. Without it, a model that was given answers from what the catalog says.
        state_schema: A TypedDict that extends `SessionState` with your own channels. These may be
            part of the input, too.
        nodes: Your own nodes that replace those of the graph, by name.
        before: Your own nodes that run each time before one of the graph's, by its name; they are
            named `before_call_tool` and so on.
        summarize_above: Messages kept out of the running summary, which is extended when there are
            more.
        governor: Its model writes the running summary; without one, or if the model fails, the
            summary is an extract.
        telemetry: Sinks for events with names and counts: `LoggingSink`, `StreamSink`,
            `OpenTelemetrySink` or another.

    Raises:
        CatalogError: Catalog, tools and functions do not fit: every mistake at once.
        InvalidInput: Both a classifier and a model were given, `summarize_above` is below 2, a node
            is not known, the state schema does not extend `SessionState`, or something is no sink
            or no
            function: every mistake at once.
        MissingExtra: A model was named by a string and the extra `agents` is not installed.
    """
    own, earlier = nodes or {}, before or {}
    mistakes = [
        *_mistakes(classifier, model, summarize_above),
        *(["answer must be a function"] if answer is not None and not callable(answer) else []),
        *_unknown("nodes", own),
        *_unknown("before", earlier),
        *_schema_mistakes(state_schema),
    ]
    if mistakes:
        raise InvalidInput("; ".join(mistakes))
    chosen = classifier or (RuleClassifier() if model is None else ModelClassifier(model))
    playbook = Playbook(
        catalog, tools, Extensions(extractors or {}, validators or {}, normalisers or {})
    )
    reporter = Reporter(playbook, Emitter(telemetry))
    built = Nodes(
        playbook=playbook,
        classifier=chosen,
        summarize_above=summarize_above,
        reporter=reporter,
        answerer=_answerer(answer, chosen, playbook.catalog),
        governor=governor,
    )
    graph = StateGraph(state_schema, input_schema=_input_of(state_schema))
    for name, node in _nodes(built).items():
        graph.add_node(name, own.get(name, node))
    for name, node in earlier.items():
        graph.add_node(f"before_{name}", node)
        graph.add_edge(f"before_{name}", name)
    _connect(graph, built, {name: f"before_{name}" if name in earlier else name for name in NODES})
    return graph


def _answerer(
    answer: Answer | None, classifier: Classifier, catalog: IntentCatalog
) -> Answerer | None:
    """What answers users' questions: the application's function, or the classifier's model."""
    if answer is not None:
        return FunctionAnswerer(answer)
    return (
        ModelAnswerer(classifier.model, catalog)
        if isinstance(classifier, ModelClassifier)
        else None
    )


def _nodes(built: Nodes) -> dict[str, Node]:
    """The graph's own nodes, by name."""
    return {
        "classify": RunnableLambda(built.classify, built.aclassify, name="classify"),
        "ask_user": built.ask_user,
        "call_tool": RunnableLambda(built.call_tool, built.acall_tool, name="call_tool"),
        "respond": built.respond,
        "summarize": RunnableLambda(built.summarize, built.asummarize, name="summarize"),
    }


def _connect(graph: StateGraph[Any, None, Any, Any], built: Nodes, to: Mapping[str, str]) -> None:
    """Draw the edges.

    Args:
        graph: The graph, with all its nodes.
        built: What decides where a turn goes.
        to: Where an edge to a node leads: to the node, or to the one before it.
    """

    def targets(*names: str) -> dict[Hashable, str]:
        return {name: to.get(name, name) for name in names}

    graph.add_edge(START, to["classify"])
    graph.add_conditional_edges(
        "classify",
        built.after_classify,
        targets("ask_user", "call_tool", "respond", "summarize", END),
    )
    graph.add_edge("ask_user", to["classify"])
    graph.add_conditional_edges("call_tool", built.after_call, targets("call_tool", "respond"))
    graph.add_conditional_edges(
        "respond", built.after_respond, targets("classify", "summarize", END)
    )
    graph.add_edge("summarize", END)


def _mistakes(classifier: object, model: object, summarize_above: int) -> Iterator[str]:
    if classifier is not None and model is not None:
        yield "pass either a classifier or a model, not both"
    if classifier is not None and not isinstance(classifier, Classifier):
        yield f"{classifier!r} is not a classifier: it needs the methods classify and aclassify"
    if summarize_above < 2:
        yield f"summarize_above is {summarize_above}: it must be at least 2"


def _unknown(argument: str, own: Mapping[str, object]) -> Iterator[str]:
    for name, node in own.items():
        if name not in NODES:
            yield f"{argument}: unknown node {name!r}; {instead_of(name, NODES)}"
        elif not callable(node) and not isinstance(node, Runnable):
            yield f"{argument}: {name!r} must be a function, a runnable or a compiled graph"


def _schema_mistakes(state_schema: type[Any]) -> Iterator[str]:
    if not is_typeddict(state_schema):
        yield (
            f"state_schema: {getattr(state_schema, '__name__', state_schema)!r} must be a TypedDict"
            " that extends SessionState"
        )
        return
    channels = get_type_hints(state_schema, include_extras=True)
    for name, kind in get_type_hints(SessionState, include_extras=True).items():
        if channels.get(name) != kind:
            how = "has another type" if name in channels else "is missing"
            yield (
                f"state_schema: the channel {name!r} {how}; extend SessionState and add channels"
                " only"
            )


def _input_of(state_schema: type[Any]) -> type[Any]:
    """What a caller gives: messages, and channels of the application."""
    known = get_type_hints(SessionState)
    own = {
        name: kind
        for name, kind in get_type_hints(state_schema, include_extras=True).items()
        if name not in known
    }
    if not own:
        return SessionInput
    return TypedDict(  # type: ignore[operator,no-any-return]
        f"{state_schema.__name__}Input",
        {**get_type_hints(SessionInput, include_extras=True), **own},
        total=False,
    )
