"""Delivers one user message to a thread: a new request, an answer, or one delivered before.

The logic is a generator that says which call to make and receives the thread's state then; two
small runners make the calls, one sync and one async. It looks at the thread before every call,
because a process may have died at any point of the turn before.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.constants import START
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt, StateSnapshot

from langmem_ext._internal.calls import uncut
from langmem_ext._internal.json import whole_characters
from langmem_ext.errors import (
    ConversationError,
    InvalidInput,
    LangmemExtError,
)
from langmem_ext.log.message_log import thread_key
from langmem_ext.messages.annotations import NAMESPACE, asked_in
from langmem_ext.storage.driver import Leases, SupportsLease, aleased, leased
from langmem_ext.threads.states.held import HELD, Standing, require_seen
from langmem_ext.threads.states.rewind import COPY, arewind, finished_again, rewind
from langmem_ext.types import CONFIRMATION, UNASKED
from langmem_ext.waiting.interrupts.foreign import plan_answers, plan_resume
from langmem_ext.waiting.sensitive import marked, written_at
from langmem_ext.waiting.time_zone import zoned_now
from langmem_ext.waiting.turn import (
    Turn,
    asked_by,
    asked_of,
    goes_on_by_a_yes,
    messages_of,
    pending_interrupts,
    read_turn,
)

RECURSION_LIMIT = 60

RUNS = 8
"""How often a graph is run for one message, at most: to finish an earlier turn, to deliver the
message, and to finish its turn."""

_log = logging.getLogger(__name__)


def converse(
    graph: Pregel[Any, Any, Any, Any],
    text: str | HumanMessage = "",
    *,
    thread_id: str | int | UUID,
    resume: object = None,
    message_id: str | None = None,
    interrupt_id: str | None = None,
    seen: Collection[str] | None = None,
    config: RunnableConfig | None = None,
    now: datetime | None = None,
    wait: float = 10,
) -> Turn:
    """Deliver one user message to a thread; returns when the thread is idle or waits for an answer.

    The message answers a pending question, or starts a turn; a turn that a dead process left
    unfinished is finished first. An empty message delivers nothing and shows the pending question.
    The message is stored before it is processed: if this raises or the process dies, the same call
    with the same `message_id` finishes the turn and does not deliver it twice.

    A graph without the channel `waiting_for_param` works, too: its interrupt is resumed with the
    plain text. Where the interrupt asks for something else (LangChain's `HumanInTheLoopMiddleware`,
    a form of an MCP server, the Agent Inbox, a `response_schema`), the text is translated
    (`approve`, `no, too dear`, `edit amount to 20`, `the second one`) or read as JSON, and refused
    if the interrupt does not take it. Several interrupts are asked one after the other, and resumed
    together when the last one is answered; until then their answers are held in the thread. An
    answer with which the graph fails is taken back: the question waits again. The thread does not
    record the id of an answer, so only messages that begin a turn can be sent again there. If such
    a turn fails once more before another message, it is left as it is, with a warning, and the
    message begins a turn behind it, as LangGraph has it: the messages of both are in the thread,
    and no message blocks all that follow.

    Args:
        graph: A graph compiled with a checkpointer.
        text: What the user says. A message of LangChain is delivered whole, with pictures and
            files; an interrupt of another graph that takes any answer gets the content of such a
            message, and any other its text.
        thread_id: The conversation.
        resume: A client's answer to the pending question, as the client gives it, instead of
            text. Answers by interrupt id answer several.
        message_id: The message's id; pass one to be able to send it again. Default: a random one.
        interrupt_id: The question that the message answers (`Turn.interrupt_id`); empty if none was
            seen. Default: whichever waits when this is called.
        seen: Of a message that was queued: the ids of the interrupts that waited when it was
            written. It answers no other: a waiting graph asks again for a yes, and any other graph
            begins a turn with it.
        config: Additional configuration for the graph, without a `checkpoint_id`.
        now: When the message was written, in the user's time zone: what "tomorrow" counts from. It
            is noted on the message, so it is the same after a crash. Default: now, in the time zone
            that `config["configurable"]["tz"]` names (`Europe/Rome`), or else in this machine's.
        wait: Seconds to wait for another caller that is using the thread.

    Raises:
        InvalidThreadId: The thread id is empty, or neither a string, an int nor a UUID.
        InvalidInput: Another argument cannot be used, or the text is no answer to what waits. The
            message was not delivered.
        ThreadBusy: Another caller was still using the thread after `wait` seconds.
        StaleAnswer: The question is no longer asked, or came after the message.
        ConversationError: The thread is where no message can be delivered: it stopped at a
            breakpoint.
    """
    job = _Job.of(
        graph,
        text,
        resume,
        thread_id=thread_id,
        message_id=message_id,
        interrupt_id=interrupt_id,
        seen=seen,
        config=config,
        now=now,
    )
    with _leased(job, wait) as asked:
        steps = job.steps(asked)
        here: Any = None
        while True:
            try:
                call = steps.send(here)
            except StopIteration as done:
                return job.turn(done.value)
            if isinstance(call, Hold):
                job.saver.put_writes(call.config, call.writes, HELD)
            elif isinstance(call, Back):
                copied = graph.update_state(call.config, None, as_node=COPY)
                before, after = graph.get_state(call.config), graph.get_state(copied)
                for put in finished_again(job.saver.get_tuple(call.config), before, after):
                    job.saver.put_writes(*put)
            elif isinstance(call, Run):
                try:
                    graph.invoke(call.value, job.config_of(call), durability="sync")
                except Exception as error:  # whatever a node of somebody's graph raises
                    taken = None
                    with job.taking_back():
                        taken = rewind(job.saver, job.thread_id, failed=True)
                    job.pass_over(call, error, taken)
            snapshot = _state_of(job, call.config if isinstance(call, Look) else None)
            stored = job.saver.get_tuple(snapshot.config) if job.may_hold(snapshot) else None
            here = Standing.of(snapshot, stored)


async def aconverse(
    graph: Pregel[Any, Any, Any, Any],
    text: str | HumanMessage = "",
    *,
    thread_id: str | int | UUID,
    resume: object = None,
    message_id: str | None = None,
    interrupt_id: str | None = None,
    seen: Collection[str] | None = None,
    config: RunnableConfig | None = None,
    now: datetime | None = None,
    wait: float = 10,
) -> Turn:
    """Async twin of `converse`."""
    # A time zone that nobody asked for before is read from a file.
    job = await asyncio.to_thread(
        _Job.of,
        graph,
        text,
        resume,
        thread_id=thread_id,
        message_id=message_id,
        interrupt_id=interrupt_id,
        seen=seen,
        config=config,
        now=now,
    )
    async with _aleased(job, wait) as asked:
        steps = job.steps(asked)
        here: Any = None
        while True:
            try:
                call = steps.send(here)
            except StopIteration as done:
                return job.turn(done.value)
            if isinstance(call, Hold):
                await job.saver.aput_writes(call.config, call.writes, HELD)
            elif isinstance(call, Back):
                copied = await graph.aupdate_state(call.config, None, as_node=COPY)
                before, after = await graph.aget_state(call.config), await graph.aget_state(copied)
                for put in finished_again(await job.saver.aget_tuple(call.config), before, after):
                    await job.saver.aput_writes(*put)
            elif isinstance(call, Run):
                try:
                    await uncut(graph.ainvoke(call.value, job.config_of(call), durability="sync"))
                except Exception as error:  # as above
                    taken = None
                    with job.taking_back():
                        taken = await arewind(job.saver, job.thread_id, failed=True)
                    job.pass_over(call, error, taken)
            snapshot = await _astate_of(job, call.config if isinstance(call, Look) else None)
            stored = await job.saver.aget_tuple(snapshot.config) if job.may_hold(snapshot) else None
            here = Standing.of(snapshot, stored)


def _leased(job: _Job, wait: float) -> AbstractContextManager[tuple[Interrupt, ...] | None]:
    """Hold the thread's lease; what was asked before the wait for it, None if there was none."""
    look = lambda: pending_interrupts(_state_of(job))  # noqa: E731
    return leased(leases_of(job.saver), job.thread_id, wait=wait, look=look)


def _aleased(job: _Job, wait: float) -> AbstractAsyncContextManager[tuple[Interrupt, ...] | None]:
    """Async twin of `_leased`."""

    async def look() -> tuple[Interrupt, ...]:
        return pending_interrupts(await _astate_of(job))

    return aleased(leases_of(job.saver), job.thread_id, wait=wait, look=look)


def _state_of(job: _Job, at: RunnableConfig | None = None) -> StateSnapshot:
    """A thread's state at a checkpoint, or its newest; without what was written but does not apply.

    An input of the wrong form is stored before the graph refuses it.
    """
    try:
        return job.graph.get_state(at or job.config)
    except LangmemExtError:
        raise
    except Exception:  # whatever a reducer of somebody's graph raises
        head = job.saver.get_tuple(job.config)
        if head is None:
            raise
        return job.graph.get_state(head.config)


async def _astate_of(job: _Job, at: RunnableConfig | None = None) -> StateSnapshot:
    """Async twin of `_state_of`."""
    try:
        return await job.graph.aget_state(at or job.config)
    except LangmemExtError:
        raise
    except Exception:  # as above
        head = await job.saver.aget_tuple(job.config)
        if head is None:
            raise
        return await job.graph.aget_state(head.config)


@dataclass(frozen=True, slots=True)
class Look:
    """Read the thread's state.

    Attributes:
        config: The checkpoint; None for the newest.
    """

    config: RunnableConfig | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Invoke the graph with a message, an answer or None to continue; then read the newest state.

    Attributes:
        value: What it is invoked with.
        may_fail: Whether an error of it is passed over.
    """

    value: Any
    may_fail: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold answers until the questions that wait with theirs have one, too.

    Attributes:
        config: The checkpoint.
        writes: What holds them; an earlier one is replaced.
    """

    config: RunnableConfig
    writes: list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Back:
    """Go back to a checkpoint: what it was still to do is to be done.

    Attributes:
        config: The checkpoint.
    """

    config: RunnableConfig


Call: TypeAlias = Look | Run | Hold | Back
Steps: TypeAlias = Generator[Call, Standing, StateSnapshot]


@dataclass(frozen=True, slots=True)
class _Job:
    """One checked call of `converse`."""

    graph: Pregel[Any, Any, Any, Any]
    saver: BaseCheckpointSaver[Any]
    thread_id: str
    message: HumanMessage | None
    whole: bool
    resume: object
    interrupt_id: str | None
    seen: Collection[str] | None
    written: datetime
    config: RunnableConfig
    used: UsageMetadataCallbackHandler

    @classmethod
    def of(
        cls,
        graph: Pregel[Any, Any, Any, Any],
        text: str | HumanMessage,
        resume: object,
        *,
        thread_id: object,
        message_id: object,
        interrupt_id: str | None,
        seen: Collection[str] | None,
        config: RunnableConfig | None,
        now: datetime | None,
    ) -> _Job:
        saver = graph.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):
            raise InvalidInput(
                "the graph has no checkpointer, so threads are not stored: compile it with one"
            )
        key = thread_key(thread_id)
        used = UsageMetadataCallbackHandler()
        _check_config(config, key)
        written = now or zoned_now(config or {})
        own: RunnableConfig = {"configurable": {"thread_id": key}, "callbacks": [used]}
        return cls(
            graph=graph,
            saver=saver,
            thread_id=key,
            message=_message(
                text,
                message_id,
                written if "waiting_for_param" in graph.channels else None,
                answers=resume is not None,
            ),
            whole=isinstance(text, HumanMessage) and text != HumanMessage(text.text, id=text.id),
            resume=resume,
            interrupt_id=interrupt_id,
            seen=seen,
            written=written,
            config=merge_configs({"recursion_limit": RECURSION_LIMIT}, config, own),
            used=used,
        )

    def config_of(self, call: Run) -> RunnableConfig:
        """The config of a run; an input is sent only where it answers nothing."""
        unasked: RunnableConfig = {"configurable": {UNASKED: isinstance(call.value, dict)}}
        return merge_configs(self.config, unasked)

    def steps(self, before: Sequence[Interrupt] | None) -> Steps:
        """The calls that deliver the message until the thread is idle or asks; gives its state.

        Args:
            before: What was asked before the wait for the thread; None if it was not waited for.
        """
        here = yield Look()
        delivered, failed, tried = self._holds_message(here.snapshot), False, False
        asks_again = False
        seen = self._shown(pending_interrupts(here.snapshot) if before is None else before)
        waited = before is not None and self.seen is None
        for _ in range(RUNS):
            snapshot = here.snapshot
            answered = not tried and self._holds_failed_answer(snapshot)
            unfinished = bool(snapshot.tasks) and (answered or not pending_interrupts(snapshot))
            if unfinished and not (failed or (not delivered and self._may_withdraw(snapshot))):
                if self._stands_at_breakpoint(snapshot):
                    return self._left_at_breakpoint(snapshot, delivered)
                # A waiting graph's nodes fail for no message, and it hears only the last one: none
                # is put behind one that was not heard. An answer that fails again is taken back,
                # and its question waits: no error. An input that no channel takes was never heard.
                starts = any(task.name == START for task in snapshot.tasks)
                may_fail = answered or starts or (not self._records and not delivered)
                tried = True
                here = yield from self._resumed(here, {}, may_fail=may_fail)
                failed = (
                    may_fail
                    and bool(here.snapshot.tasks)
                    and not pending_interrupts(here.snapshot)
                    and not self._stands_at_breakpoint(here.snapshot)
                )
                place = (yield from self._before_input(snapshot)) if failed and starts else None
                if place is not None:
                    here = yield Back(place)
                    failed, asks_again = False, True
            elif delivered or self.message is None:
                return snapshot
            else:
                asked = pending_interrupts(snapshot)
                seen = self._shown(asked) if asks_again else seen
                self._require_seen(asked, seen, waited=waited)
                if not asked or self._begins_anew(asked, seen):
                    here = yield Run(self._request(snapshot, self.message))
                    delivered, failed = not self._records, False
                else:
                    answers, recorded = self._answers(here, self.message, seen)
                    if not answers:  # it says nothing: the question is shown again
                        return snapshot
                    delivered, failed = not recorded, False
                    here = yield from self._answered(here, answers)
            delivered = delivered or self._holds_message(here.snapshot)
            goes_on = not delivered or (
                bool(here.snapshot.tasks) and not pending_interrupts(here.snapshot)
            )
            if goes_on and not (failed or answered) and self._stood_still(snapshot, here.snapshot):
                break
        raise ConversationError(
            "the graph was run, but the thread is still where it was before: its checkpointer"
            " stored the turn beside the newest checkpoint. Checkpointers that order checkpoints by"
            " their ids do this where the clock of this machine is behind that of the machine that"
            " wrote last: set the clock, or use DeltaSaver; do not send the message again before"
        )

    def _before_input(
        self, snapshot: StateSnapshot
    ) -> Generator[Call, Standing, RunnableConfig | None]:
        """Where the thread was before inputs that it does not take; None if it began with one."""
        while (snapshot.metadata or {}).get("source") == "input":
            if snapshot.parent_config is None:
                return None
            snapshot = (yield Look(snapshot.parent_config)).snapshot
        return snapshot.config

    @property
    def _records(self) -> bool:
        """Whether the graph is a waiting graph, which stores every message under its own id."""
        return "waiting_for_param" in self.graph.channels

    def _holds_message(self, snapshot: StateSnapshot) -> bool:
        return self.message is None or any(
            message.id == self.message.id for message in messages_of(snapshot)
        )

    def may_hold(self, snapshot: StateSnapshot) -> bool:
        """Whether answers may be held to some of what is asked."""
        asked = pending_interrupts(snapshot)
        return bool(asked) and not self._recorded(asked)

    def _request(self, snapshot: StateSnapshot, message: HumanMessage) -> dict[str, Any]:
        """The input that begins a turn with the message."""
        if self.resume is not None:
            raise ConversationError("no question waits on the thread: there is nothing to resume")
        if "messages" not in self.graph.channels:
            raise ConversationError(
                "the graph has no channel 'messages' for the message: call graph.invoke with"
                " its own input"
            )
        return {"messages": [self._noted(message, snapshot)]}

    def _noted(self, message: HumanMessage, snapshot: StateSnapshot) -> HumanMessage:
        """The message, marked for what it may hold before it is stored first."""
        if self._records:
            # Imported late: a graph that is none of ours does not need it.
            from langmem_ext.waiting.graph import marks, nodes  # noqa: PLC0415

            if (playbook := nodes.playbook_of(self.graph)) is not None:
                now = self.written.replace(tzinfo=None)
                return marks.as_stored(playbook, snapshot.values, message, now)
        return _noted(message, messages_of(snapshot))

    def _recorded(self, asked: Sequence[Interrupt]) -> bool:
        """Whether the thread will show the message that answers what is asked."""
        return self._records and len(asked) == 1 and bool(asked_by(asked[0]))

    def _may_withdraw(self, snapshot: StateSnapshot) -> bool:
        """Whether the message may take back the yes with which an unfinished turn would go on.

        A turn that is finished first would run the tool, whatever the message says.
        """
        speaks = self._records and self.message is not None
        if not speaks or any(task.name == START for task in snapshot.tasks):
            return False
        if goes_on_by_a_yes(snapshot):
            return True
        unheard = any(isinstance(said, HumanMessage) for said in messages_of(snapshot)[-1:])
        waits = snapshot.values.get("waiting_for_param") == CONFIRMATION
        return unheard and waits and self.resume is None

    def _shown(self, asked: Sequence[Interrupt]) -> list[Interrupt]:
        """What of this waited when the message was written, if it was queued; else all."""
        return [one for one in asked if self.seen is None or one.id in self.seen]

    def _begins_anew(self, asked: Sequence[Interrupt], seen: Sequence[Interrupt]) -> bool:
        """Whether the message was queued before anything of this was asked.

        It begins a turn, as any input of LangGraph's does. A waiting graph hears it where it is.
        """
        named = self.interrupt_id is not None or self.resume is not None
        unseen = self.seen is not None and not any(question in seen for question in asked)
        return unseen and not named and not self._recorded(asked)

    def _answers(
        self, here: Standing, message: HumanMessage, seen: Sequence[Interrupt]
    ) -> tuple[dict[str, Any], bool]:
        """The answers that the message is, by interrupt id; whether the thread will show it."""
        interrupts = pending_interrupts(here.snapshot)
        ours = {question.id for question in interrupts if asked_by(question)}
        recorded = self._recorded(interrupts)
        every = recorded or self.seen is None
        named = [one.id for one in interrupts if every or one in seen]
        if self.interrupt_id is not None:
            named = [self.interrupt_id]
        waiting = {one.id: asked_of(one) for one in interrupts if one.id in named}
        if self.resume is not None:
            answers = plan_resume(waiting, self.resume)
        else:
            if not recorded and ours & waiting.keys() and _has_media(message):
                raise InvalidInput(
                    "the question takes words, and neither pictures nor files: send the message"
                    " without them. Nothing was changed"
                )
            answers = plan_answers(waiting, message.text, message.content if self.whole else None)
        noted: dict[str, Any] = {
            "id": message.id,
            NAMESPACE: {
                "at": self.written.replace(tzinfo=None).isoformat(),
                **({} if self.interrupt_id or interrupts[0] in seen else {"unseen": True}),
            },
            **({"message": message} if self.whole else {}),
        }
        return {
            name: {"value": answer, **noted} if name in ours else answer
            for name, answer in answers.items()
        }, recorded

    def _require_seen(
        self, asked: Sequence[Interrupt], seen: Sequence[Interrupt], *, waited: bool
    ) -> None:
        """Require that the message is for what waits.

        A waiting graph hears a message behind a fork, an edit or a turn that was cut off, and takes
        it for no yes to what it asks only now. What was queued is heard by every graph.

        Args:
            asked: What waits.
            seen: What waited when the message came.
            waited: Whether it waited for others that used the thread.

        Raises:
            StaleAnswer: It is not.
        """
        if self.interrupt_id is not None:
            ids = [question.id for question in asked] or [""]
            require_seen([name for name in ids if name == self.interrupt_id], [self.interrupt_id])
        elif waited:
            require_seen(asked, seen)
        elif self.resume is not None or not (self._recorded(asked) or self.seen is not None):
            require_seen(asked, [question for question in asked if question in seen])

    def _answered(
        self, here: Standing, answers: Mapping[str, Any]
    ) -> Generator[Call, Standing, Standing]:
        """Hold the answers while another question of the step has none; then go on with all."""
        held = {**here.held, **answers}
        if any(interrupt.id not in held for interrupt in here.asked):
            return (yield Hold(here.snapshot.config, here.holding(held)))
        return (yield from self._resumed(here, answers))

    def _resumed(
        self, here: Standing, answers: Mapping[str, Any], *, may_fail: bool = False
    ) -> Generator[Call, Standing, Standing]:
        """Go on with these answers and those that were held, if any."""
        if here.held:  # let go first: no answer is given twice, wherever the process dies
            yield Hold(here.snapshot.config, here.holding({}))
        together = {**here.held, **answers}
        return (yield Run(Command(resume=together) if together else None, may_fail=may_fail))

    def _holds_failed_answer(self, snapshot: StateSnapshot) -> bool:
        """Whether a task failed that had asked: if it was answered, it hears no other answer."""
        failed = any(task.error and task.interrupts for task in snapshot.tasks)
        return failed and not self._stands_at_breakpoint(snapshot)

    def _stands_at_breakpoint(self, snapshot: StateSnapshot) -> bool:
        """Whether the thread may have stopped at a breakpoint.

        A dead process leaves the same state, so it is never continued unasked.
        """
        before = self.graph.interrupt_before_nodes
        return (
            bool(self.graph.interrupt_after_nodes)
            or before == "*"
            or any(task.name in before for task in snapshot.tasks)
        )

    def _stood_still(self, before: StateSnapshot, snapshot: StateSnapshot) -> bool:
        """Whether a run has left the thread where it was, without a question or breakpoint."""
        ids = {state.config["configurable"].get("checkpoint_id") for state in (before, snapshot)}
        asked = [
            interrupt
            for interrupt in pending_interrupts(snapshot)
            if interrupt not in pending_interrupts(before)
        ]
        return len(ids) == 1 and not asked and not self._stands_at_breakpoint(snapshot)

    def _left_at_breakpoint(self, snapshot: StateSnapshot, delivered: bool) -> StateSnapshot:
        if delivered:
            return snapshot
        names = ", ".join(repr(task.name) for task in snapshot.tasks)
        raise ConversationError(
            f"the thread is stopped at a breakpoint before {names}: continue with"
            " graph.invoke(None, config), then send"
        )

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Let the graph's error be raised, and none that comes of taking back its answer."""
        try:
            yield
        except Exception as error:
            _log.warning(
                "a failed answer may be stored on thread %r (%s): `threads rewind` undoes it",
                self.thread_id,
                type(error).__name__,
            )

    def pass_over(self, call: Run, error: Exception, taken: bool | None) -> None:
        """Go on after an error of an earlier message's turn; raise any other.

        Args:
            call: What failed.
            error: The graph's error.
            taken: Whether an answer that failed was taken back.
        """
        if taken:
            error.add_note(
                "The answer was taken back and the question waits again. "
                f"`langmem-ext threads rewind {self.thread_id}` (or `Threads.rewind`) "
                "takes back earlier answers of the step, too."
            )
        if not call.may_fail or isinstance(error, LangmemExtError):
            raise error
        left = "its answer was undone" if taken else "it was not changed"
        warning = "the previous turn failed again on thread %r (%s): %s"
        _log.warning(warning, self.thread_id, type(error).__name__, left)

    def turn(self, snapshot: StateSnapshot) -> Turn:
        return read_turn(snapshot, self.used.usage_metadata)


def _message(
    text: object, message_id: object, now: datetime | None, *, answers: bool
) -> HumanMessage | None:
    """The message to deliver; None if it is empty.

    A client's answer is kept beside it.
    """
    delivered = HumanMessage(text) if isinstance(text, str) else text
    if not isinstance(delivered, HumanMessage):
        kind = type(text).__name__
        raise InvalidInput(
            f"a message must be text, not {kind}: pass a structured answer as resume=…, or as JSON"
            " text"
        )
    if answers and delivered.text.strip():
        raise InvalidInput("pass either a message or resume=…, not both")
    if message_id is not None and (not isinstance(message_id, str) or not message_id):
        raise InvalidInput("a message id must be a non-empty string; omit it to get a random one")
    content = whole_characters(delivered.content)
    if not (content.strip() if isinstance(content, str) else content) and not answers:
        return None
    message = delivered.model_copy(
        update={"content": content, "id": message_id or delivered.id or str(uuid4())}
    )
    return message if now is None else written_at(message, now)


def _has_media(message: HumanMessage) -> bool:
    content = message.content
    return not isinstance(content, str) and any(
        isinstance(block, dict) and block.get("type") != "text" for block in content
    )


def _noted(message: HumanMessage, before: Sequence[BaseMessage]) -> HumanMessage:
    """The message, marked if it follows the question of another graph for a sensitive value."""
    asked = asked_in(vars(before[-1])) if before else None
    return marked(message, asked[1]) if asked else message


def _check_config(config: RunnableConfig | None, thread_id: str) -> None:
    configurable = (config or {}).get("configurable") or {}
    if configurable.get("checkpoint_id"):
        raise InvalidInput(
            "a conversation continues at the thread's latest state: omit checkpoint_id "
            '(to go back, fork first: graph.update_state(old_config, {}, as_node="classify"))'
        )
    named = configurable.get("thread_id")
    if named is not None and str(named) != thread_id:
        raise InvalidInput(
            f"config names the thread {str(named)!r}, the call {thread_id!r}: pass one"
        )


_within_process: WeakKeyDictionary[object, Leases] = WeakKeyDictionary()
_guard = threading.Lock()


def leases_of(saver: object) -> SupportsLease:
    """The leases on the threads that `saver` stores: its own, or else those of this process."""
    if isinstance(saver, SupportsLease):
        return saver
    with _guard:
        return _within_process.setdefault(saver, Leases())
