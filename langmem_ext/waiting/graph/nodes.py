"""The nodes of the waiting graph. They act; the pure modules beside them decide.

A node is run again from its top after a crash or a resume, so each writes everything it does in its
one update, and the only effects outside the graph are the classifier's and the tools' own.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END

from langmem_ext._internal.calls import between_calls, called
from langmem_ext._internal.json import whole_characters
from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.messages.blocks import blocks_of
from langmem_ext.messages.text import words_of
from langmem_ext.types import CHECKPOINTER, CONFIRMATION, UNASKED
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.graph.answerer import Answerer
from langmem_ext.waiting.graph.events import Reporter
from langmem_ext.waiting.graph.marks import (
    answer_hidden,
    as_stored,
    known_of,
    learnt,
    noted,
    on_thread,
    read_of,
    risks_of,
    secrets_of,
)
from langmem_ext.waiting.interrupts.ask import answer_of, ask
from langmem_ext.waiting.interrupts.question import payload_of
from langmem_ext.waiting.policy.asking import question
from langmem_ext.waiting.policy.plan import Decision, next_task
from langmem_ext.waiting.policy.running_summary import extracted, is_due, plan_part
from langmem_ext.waiting.policy.session import (
    Session,
    read_sensitive,
    read_session,
    read_summary,
)
from langmem_ext.waiting.policy.tool_call import (
    Call,
    failed,
    plan_call,
    plan_outcome,
    returned,
)
from langmem_ext.waiting.policy.turn import plan_turn
from langmem_ext.waiting.policy.user_questions import AskedQuestion
from langmem_ext.waiting.policy.value_text import fill, in_text
from langmem_ext.waiting.sensitive import (
    KNOWN,
    Known,
    Secrets,
    annotated,
    covered,
    instant_of,
    moment_of,
)
from langmem_ext.waiting.state import PlanExecution, SessionState, Summary
from langmem_ext.waiting.time_zone import zoned_now
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    Classifier,
    ClassifyRequest,
    RuleClassifier,
)
from langmem_ext.waiting.understand.message import Heard, spotted

if TYPE_CHECKING:
    from langmem_ext.context.governor import ContextGovernor

logger = logging.getLogger(__name__)

_PLAIN = JsonPlusSerializer()

HISTORY = 12
"""Messages before the latest that a classifier is shown."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes and the edges' decisions, for one catalog with its tools.

    Attributes:
        playbook: The catalog and its tools.
        classifier: Decides what a message asks for.
        summarize_above: Messages kept out of the running summary; it is carried on when there are
            more.
        reporter: Tells telemetry.
        answerer: Answers questions of the user's.
        governor: Has a model write the summary; without one it is an extract.
    """

    playbook: Playbook
    classifier: Classifier
    summarize_above: int
    reporter: Reporter
    answerer: Answerer | None = None
    governor: ContextGovernor | None = None

    # -- classify

    def classify(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Decide what the latest message means and what happens next."""
        return perform(self._decide(state, config), self._serve)

    async def aclassify(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Async twin of `classify`."""
        between_calls()
        return await aperform(self._decide(state, config), self._aserve)

    def _serve(self, request: ClassifyRequest | AskedQuestion) -> Classification | str | None:
        if isinstance(request, ClassifyRequest):
            return self.classifier.classify(request)
        return self.answerer.answer(request) if self.answerer else None

    async def _aserve(
        self, request: ClassifyRequest | AskedQuestion
    ) -> Classification | str | None:
        if isinstance(request, ClassifyRequest):
            return await self.classifier.aclassify(request)
        return await self.answerer.aanswer(request) if self.answerer else None

    def _decide(
        self, state: SessionState, config: RunnableConfig
    ) -> Generator[ClassifyRequest | AskedQuestion, Any, dict[str, Any]]:
        here = self._on(state)
        heard = here._heard(state, config)
        confirms = heard is not None and state.get("waiting_for_param") == CONFIRMATION
        unasked = config.get("configurable", {}).get(UNASKED)
        if confirms and (unasked or _says_more(state["messages"])):
            state = {**state, "waiting_for_param": None}
        if heard is not None:
            self.reporter.received(state, config)
        decided = yield from plan_turn(
            here.playbook,
            state,
            heard,
            _now(state),
            answers=self.answerer is not None,
            rereads=not isinstance(self.classifier, RuleClassifier),
        )
        update = here._apply(state, heard, decided)
        self.reporter.decided(state, update, heard is not None, config)
        return update

    def _heard(self, state: SessionState, config: RunnableConfig) -> Heard | None:
        """The last message if it is the user's; otherwise nothing was said."""
        messages = state.get("messages") or []
        if not messages or not isinstance(messages[-1], HumanMessage):
            return None
        text, now = words_of(vars(messages[-1])), moment_of(messages[-1]) or _local_now(config)
        return Heard(
            id=str(messages[-1].id),
            text=text,
            history=messages[-1 - HISTORY : -1],
            now=now,
            answer=answer_of(messages[-1]),
            summary=(
                summary["text"]
                if (summary := read_summary(state)) and not self.playbook.reads_locally
                else ""
            ),
            known=known_of(self.playbook, state).with_values(spotted(self.playbook, text, now)),
        )

    def _apply(self, state: SessionState, heard: Heard | None, decided: Decision) -> dict[str, Any]:
        messages: list[AnyMessage] = []
        playbook, secrets = self.playbook, list[tuple[str, str]]()
        after = read_session({**state, **decided.update}, playbook)
        known = (heard.known if heard else known_of(playbook, state)).with_values(
            secrets_of(playbook.sensitive, decided.update)
        )
        if heard is not None:
            heard, message = replace(heard, known=known), state["messages"][-1]
            read = read_of(playbook, heard)
            secrets += learnt(read, after.params)
            noted_message = answer_hidden(
                noted(
                    playbook, message, heard, read, self._session(state), after, decided.mentioned
                ),
                known,
            )
            if noted_message is not message:
                messages.append(noted_message)
        replies = [covered(AIMessage(text), known) for text in decided.say]
        if replies and (asked := decided.update["waiting_for_param"]) is not None:
            risks = risks_of(playbook, after)
            if risks:  # whoever stores the answer, it is marked
                replies[-1] = annotated(
                    annotated(replies[-1], "asks", asked), "risks", [*sorted(risks)]
                )
        messages += replies
        update = dict(decided.update)
        if (sensitive := read_sensitive(state, self.playbook)) != state.get("sensitive_params"):
            update["sensitive_params"] = sensitive
        update |= self._kept(secrets, state, update)
        return {**update, "messages": messages} if messages else update

    def _kept(self, secrets: Secrets, *states: Mapping[str, Any]) -> dict[str, Any]:
        """What the thread knows from now on, if that is more than before.

        Args:
            secrets: What is known besides the values in the states.
            states: The state, and what was changed in it.
        """
        before = Known.of(states[0])
        salted = before if before.values else Known(token_hex(16))
        after = salted.with_values([*secrets_of(self.playbook.lasting, *states), *secrets])
        return {KNOWN: after.channel()} if after.values != before.values else {}

    # -- ask_user

    def ask_user(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Wait for the answer to the question; a wait that is void is decided again."""
        session, playbook = self._session(state), self._on(state).playbook
        if session.plan is None or session.waiting_for is None:
            return {}
        asked = question(playbook, session.plan, session.params, session.waiting_for)
        resumed = ask(payload_of(playbook, session.plan, session.params, asked))
        if resumed.answer is None or any(
            message.id == resumed.id for message in state.get("messages") or [] if resumed.id
        ):
            return {}
        message = resumed.message()
        now = moment_of(message) or _local_now(config)
        update: dict[str, Any] = {"messages": [as_stored(playbook, state, message, now)]}
        if asked.param == CONFIRMATION and resumed.unseen:
            update["waiting_for_param"] = None  # a yes to what was not shown is for nothing
        elif resumed.answer.approved:
            approved = playbook.approval(session.plan, session.params, resumed.answer.values)
            update["plan"] = PlanExecution(**{**session.plan, "approved": approved})
        return update

    # -- call_tool

    def call_tool(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Run the plan's next step."""
        call = self._call(state, config)
        if call is None:
            return {}
        began = monotonic()
        try:
            answer = returned(call, call.tool.invoke(call.invocation, config))
        except Exception as error:
            answer = self._failure(call, error)
        return self._called(state, call, answer, began, config)

    async def acall_tool(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Async twin of `call_tool`."""
        between_calls()
        call = self._call(state, config)
        if call is None:
            return {}
        began = monotonic()
        try:
            answer = returned(call, await called(call.tool.ainvoke(call.invocation, config)))
        except Exception as error:
            answer = self._failure(call, error)
        return self._called(state, call, answer, began, config)

    def _call(self, state: SessionState, config: RunnableConfig) -> Call | None:
        """The call that is due; None when none is."""
        session = self._session(state)
        if session.plan is None or next_task(self.playbook, session) != "call_tool":
            return None
        return plan_call(self.playbook, session, session.plan, _thread_id(config))

    def _called(
        self,
        state: SessionState,
        call: Call,
        answer: ToolMessage,
        began: float,
        config: RunnableConfig,
    ) -> dict[str, Any]:
        session, here = self._session(state), self._on(state)
        assert session.plan is not None
        known = known_of(here.playbook, state)
        answer = _storable(call, answer, config)
        update = plan_outcome(here.playbook, session, session.plan, call, answer, known)
        update |= here._kept((), state, update)
        self.reporter.called(
            state, update, call.tool.name, int((monotonic() - began) * 1000), config
        )
        return update

    def _failure(self, call: Call, error: Exception) -> ToolMessage:
        """The message of a failed tool: its own words if meant for the user, else a general text.

        Interrupts pass.
        """
        if isinstance(error, GraphBubbleUp):
            raise error
        if isinstance(error, ToolException):
            return failed(call, str(error) or self.playbook.catalog.replies.failed)
        logger.warning("tool %s failed with %s", call.tool.name, type(error).__name__)
        return failed(call, self.playbook.catalog.replies.failed)

    # -- respond

    def respond(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Answer the request and end it; one that is not at its end is left as it is."""
        session = self._session(state)
        if session.plan is None or next_task(self.playbook, session) != "respond":
            return {}
        intent = self.playbook.intent_of(session.plan)
        last = session.plan["results"][-1] if session.plan["results"] else None
        if last is not None and last["status"] == "error":
            text = in_text(last["value"])
        else:
            result = last["value"] if last is not None else None
            text = (
                fill(intent.reply, self.playbook.shown(session.params), result)
                or (result if isinstance(result, str) else "")
                or "Done."
            )
        message = AIMessage(text)
        known = known_of(on_thread(self.playbook, state), state)
        update = {
            "messages": [covered(message, known)],
            "plan": None,
            "waiting_for_param": None,
            "last_intent_id": intent.id,
        }
        self.reporter.responded(state, update, intent.id, last["status"] if last else "ok", config)
        return update

    # -- summarize

    def summarize(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Carry the running summary on; the messages stay as they are."""
        part = plan_part(state["messages"], read_summary(state), self.summarize_above)
        if part is None:
            return {}
        if self.governor is None:
            return self._summarised(state, extracted(part), config)
        return self._summarised(
            state,
            Summary(text=self.governor.sum_up(part.messages, part.previous), through=part.through),
            config,
        )

    async def asummarize(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Async twin of `summarize`."""
        between_calls()
        part = plan_part(state["messages"], read_summary(state), self.summarize_above)
        if part is None:
            return {}
        if self.governor is None:
            return self._summarised(state, extracted(part), config)
        text = await self.governor.asum_up(part.messages, part.previous)
        return self._summarised(state, Summary(text=text, through=part.through), config)

    def _summarised(
        self, state: SessionState, summary: Summary, config: RunnableConfig
    ) -> dict[str, Any]:
        update = {"summary": summary}
        self.reporter.summarised(state, update, config)
        return update

    # -- edges

    def after_classify(self, state: SessionState) -> str:
        """To the question, the tool, the reply, or the end of the turn."""
        return next_task(self.playbook, self._session(state)) or self._rest(state)

    def after_call(self, state: SessionState) -> Literal["call_tool", "respond"]:
        """To the next step, or to the reply, which passes on what is not at its end."""
        return (
            "call_tool"
            if next_task(self.playbook, self._session(state)) == "call_tool"
            else "respond"
        )

    def after_respond(self, state: SessionState) -> str:
        """Back to a request that goes on or was suspended, or to the end of the turn."""
        session = self._session(state)
        return "classify" if session.plan is not None or session.suspended else self._rest(state)

    def _rest(self, state: SessionState) -> str:
        due = is_due(state.get("messages") or [], read_summary(state), self.summarize_above)
        return "summarize" if due else END

    def _on(self, state: Mapping[str, Any]) -> Nodes:
        """The nodes with all that is sensitive on this thread: another graph may have said so."""
        playbook = on_thread(self.playbook, state)
        return self if playbook is self.playbook else replace(self, playbook=playbook)

    def _session(self, state: SessionState) -> Session:
        return read_session(state, self.playbook)


def _now(state: SessionState) -> datetime:
    """When the latest message was written, with its time zone; now, where that was not noted."""
    last = next(
        (
            message
            for message in reversed(state.get("messages") or [])
            if isinstance(message, HumanMessage)
        ),
        None,
    )
    return (last and instant_of(last)) or datetime.now().astimezone()


def _storable(call: Call, answer: ToolMessage, config: RunnableConfig) -> ToolMessage:
    """The message, or its words alone where the run's checkpointer could not store it.

    The tool has run: if storing failed, every later turn would run it again.
    """
    serde = getattr(config.get("configurable", {}).get(CHECKPOINTER), "serde", _PLAIN)
    try:
        answer.text.encode()  # half of a character is no text
        serde.dumps_typed(answer)
    except Exception as error:  # whatever an object in an artifact raises
        kind, name = type(error).__name__, call.tool.name
        logger.warning("what %s returned cannot be stored (%s): its text is kept", name, kind)
        words = returned(call, whole_characters(answer.text))
        return words.model_copy(update={"status": answer.status})
    return answer


def _says_more(messages: Sequence[AnyMessage]) -> bool:
    """Whether the user says more than what is read: in a message before, or in a picture."""
    return any(
        isinstance(block, dict) and block.get("type") != "text"
        for block in blocks_of(messages[-1].content)
    ) or any(isinstance(message, HumanMessage) for message in messages[-2:-1])


def _local_now(config: RunnableConfig) -> datetime:
    """The user's local time, without its time zone."""
    return zoned_now(config).replace(tzinfo=None)


def _thread_id(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("thread_id", ""))


def playbook_of(graph: Any) -> Playbook | None:
    """The catalog and tools of a waiting graph; None for any other graph."""
    node = getattr(getattr(graph, "builder", None), "nodes", {}).get("respond")
    nodes = getattr(getattr(getattr(node, "runnable", None), "func", None), "__self__", None)
    return nodes.playbook if isinstance(nodes, Nodes) else None
