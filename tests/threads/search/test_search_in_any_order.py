"""Promise: whatever is written, edited, marked, forgotten and copied, by whichever saver, and
whenever the index is made: a search finds exactly what a scan of the shown texts finds, the doctor
finds nothing, and a marked value was never in the index.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from prune_reference import assert_sound, rows
from savers import BACKENDS, Backend, open_saver
from search_reference import Overtaken, assert_found, begin_index, has_index

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads

WORDS = ("order", "orders", "late", "parcel", "the", "東京タワー", "Straße")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
threads = st.sampled_from(["t1", "t1", "t2", "copy"])
savers = st.integers(0, 1)
SECRET = "sesame"


class Stopped(Exception):
    """Ends a run between the user's message and the node that looks at it."""


class Searching(RuleBasedStateMachine):
    """Two savers on one database; in memory, one is both."""

    backend: Backend

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        url = self.backend.new_url(Path(self.folder.name))
        first: DeltaSaver = open_saver(url)
        self.savers = [first, open_saver(url) if self.backend.survives_close else first]
        self.on = False
        self.stops = False
        self.count = 0

    def teardown(self) -> None:
        for saver in self.savers:
            saver.close()
        self.folder.cleanup()

    def _graph(self, saver: int, over: Any = None) -> Any:
        def answer(state: MessagesState) -> Any:
            if self.stops:
                raise Stopped
            last = state["messages"][-1]
            self.count += 1
            said = [
                AIMessage(
                    f"{last.text.replace(SECRET, '')} answered {self.count}",
                    id=f"a{self.count}" if self.count % 2 else None,
                )
            ]
            if SECRET in last.text:
                notes = {"langmem_ext": {"sensitive": ["word"]}}
                return {"messages": [last.model_copy(update={"additional_kwargs": notes}), *said]}
            return {"messages": said}

        return (
            StateGraph(MessagesState)
            .add_node("answer", answer)
            .add_edge(START, "answer")
            .compile(checkpointer=over or self.savers[saver])
        )

    def _say(self, saver: int, thread: str, said: Any) -> None:
        self._graph(saver).invoke(
            {"messages": [said]} if said is not None else None, _config(thread)
        )

    def _messages(self, thread: str) -> list[Any]:
        return list(self._graph(0).get_state(_config(thread)).values.get("messages", ()))

    # -- what is said ------------------------------------------------------------------------------

    @rule(saver=savers, thread=threads, text=texts, form=st.integers(0, 2))
    def say(self, saver: int, thread: str, text: str, form: int) -> None:
        self.count += 1
        self._say(
            saver,
            thread,
            [HumanMessage(text), HumanMessage(text, id=f"h{self.count}"), ("user", text)][form],
        )

    @rule(saver=savers, thread=threads, text=texts, form=st.integers(0, 2), on=st.booleans())
    def say_what_is_sensitive_and_stored_late(
        self, saver: int, thread: str, text: str, form: int, on: bool
    ) -> None:
        said = [
            HumanMessage(f"{text} {SECRET}"),
            HumanMessage(f"{SECRET} {text}", id=f"l{self.count}"),
            ("user", f"{text} {SECRET}" * 9),
        ]

        def look() -> None:
            if on:
                self.enable(1 - saver)
            self._nothing_secret()

        graph = self._graph(saver, Overtaken(self.savers[saver], look))
        graph.invoke({"messages": [said[form]]}, _config(thread), durability="async")

    @rule(
        saver=savers,
        thread=threads,
        text=texts,
        form=st.integers(0, 2),
        on=st.booleans(),
        compact=st.booleans(),
    )
    def say_what_is_sensitive(
        self, saver: int, thread: str, text: str, form: int, on: bool, compact: bool
    ) -> None:
        said = [
            HumanMessage(f"{text} {SECRET}"),
            HumanMessage(f"{SECRET} {text}", id=f"s{self.count}"),
            ("user", f"{text} {SECRET}" * 9),
        ]
        self.stops = True
        try:
            self._say(saver, thread, said[form])
        except Stopped:
            self.stops = False
        if on:
            self.enable(1 - saver)
        if compact:
            self.savers[1 - saver].compact()
        self._nothing_secret()
        self._say(saver, thread, None)

    @rule(saver=savers, thread=threads, text=texts, known=st.booleans())
    def add_to_history(self, saver: int, thread: str, text: str, known: bool) -> None:
        ids = (
            [message.id for message in self._messages(thread) if isinstance(message, HumanMessage)]
            if known
            else []
        )
        self.count += 1
        # one that the message has not had before: else it would be found by what it had since
        text = f"{text} {self.count}"
        message = HumanMessage(text, id=ids[self.count % len(ids)] if ids else f"e{self.count}")
        ThreadChatMessageHistory(thread, self.savers[saver]).add_messages([message])
        if self.on:
            found = {
                hit.message_id
                for hit in Threads(self.savers[1 - saver]).search(text, thread=thread, limit=1000)
            }
            assert message.id in found, "what a history has written is found at once"

    @rule(saver=savers, thread=threads, text=texts, at=st.integers(0, 9), remove=st.booleans())
    def change(self, saver: int, thread: str, text: str, at: int, remove: bool) -> None:
        messages = [message for message in self._messages(thread) if isinstance(message, AIMessage)]
        if messages:
            message_id = messages[at % len(messages)].id
            change = RemoveMessage(id=message_id) if remove else AIMessage(text, id=message_id)
            self._graph(saver).update_state(
                _config(thread), {"messages": [change]}, as_node="answer"
            )

    # -- what is forgotten and copied --------------------------------------------------------------

    @rule(saver=savers, thread=threads, last=st.integers(1, 3))
    def prune(self, saver: int, thread: str, last: int) -> None:
        self.savers[saver].prune([thread], keep_last=last)

    @rule(saver=savers, thread=threads)
    def delete(self, saver: int, thread: str) -> None:
        Threads(self.savers[saver]).delete(thread)

    @rule(saver=savers, thread=st.sampled_from(["t1", "t2"]), at=st.integers(0, 20))
    def fork(self, saver: int, thread: str, at: int) -> None:
        ids = [
            one.config["configurable"]["checkpoint_id"]
            for one in self.savers[saver].list(_config(thread))
        ]
        if ids:
            Threads(self.savers[saver]).delete("copy")
            Threads(self.savers[saver]).fork(
                thread, checkpoint_id=ids[at % len(ids)] if at else None, to="copy"
            )
            self._nothing_secret()
            # Forked before a node has looked at it, a message is unmarked there, and the next
            # message would have it indexed.
            if self._graph(saver).get_state(_config("copy")).next:
                self._say(saver, "copy", None)

    @rule(saver=savers)
    def compact(self, saver: int) -> None:
        self.savers[saver].compact()

    # -- the index ---------------------------------------------------------------------------------

    @rule(saver=savers)
    def enable(self, saver: int) -> None:
        Threads(self.savers[saver]).enable_search()
        self.on = True

    @rule(saver=savers, steps=st.integers(1, 3))
    def begin_to_enable(self, saver: int, steps: int) -> None:
        begin_index(self.savers[saver], steps)

    @rule(saver=savers)
    def make_the_tables_only(self, saver: int) -> None:
        begin_index(self.savers[saver], 0)

    @rule(saver=savers)
    def rebuild(self, saver: int) -> None:
        Threads(self.savers[saver]).rebuild_search()
        self.on = True

    @rule(saver=savers, text=texts)
    def search(self, saver: int, text: str) -> None:
        assert_found(self.savers[saver], Threads(self.savers[saver]), text)
        self.on = True

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def what_is_found_is_what_a_scan_finds(self) -> None:
        self._nothing_secret()
        if self.on:
            for word in ("order", "answered", "京タ", '"the late"'):
                assert_found(self.savers[0], Threads(self.savers[1]), word)
        assert_sound(self.savers[0])

    def _nothing_secret(self) -> None:
        if has_index(self.savers[0]):
            assert (
                list(
                    rows(self.savers[0], f"SELECT words FROM search WHERE words LIKE '%{SECRET}%'")
                )
                == []
            )


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def cases(backend: Backend) -> Any:
    """The tests of one kind of database."""
    machine: Any = type(f"SearchingOn{backend.name.title()}", (Searching,), {"backend": backend})
    found = machine.TestCase
    found.settings = settings(stateful_step_count=15)
    found.pytestmark = [pytest.mark.postgres] if backend.name == "postgres" else []
    return found


TestInMemory, TestOnAFile, TestOnPostgres = map(cases, BACKENDS)
