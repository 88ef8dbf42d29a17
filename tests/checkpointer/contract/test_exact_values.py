"""Promise: what is put comes back to the letter, whatever a saver remembers of it: each state of a
list or dict that changes, ids, versions and times of any kind; and what is loaded is nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from comparison import Names, assert_same
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from mutations import edit, spoil
from samples import said

from langmem_ext import DeltaSaver, examine

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def put(saver: Any, parent: Any, version: Any, values: dict[str, Any]) -> Any:
    """Put a checkpoint; its config."""
    versions: Any = dict.fromkeys(values, version)
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
    return saver.put(parent, checkpoint, {}, versions)


def read(saver: Any, config: Any) -> Any:
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


@contextmanager
def opened() -> Iterator[tuple[DeltaSaver, Callable[[], DeltaSaver]]]:
    """A saver on a file, and what opens another one there, which remembers nothing."""
    with ExitStack() as stack:
        path = f"{stack.enter_context(TemporaryDirectory())}/memory.db"

        def cold() -> DeltaSaver:
            return stack.enter_context(closing(DeltaSaver.open(path, synchronous="normal")))

        yield cold(), cold


def form(values: Any) -> Any:
    """Values with the types of everything in them, and the fields that messages were given."""
    messages = values.get("messages", [])
    return Names(keep=True).form(values), [message.model_fields_set for message in messages]


def assert_states(states: list[dict[str, Any]]) -> None:
    """Each state reads back as from LangGraph's saver, also when what was read is spoiled, and by
    who opens the database anew.
    """
    reference = InMemorySaver()
    with opened() as (saver, cold):
        configs = []
        for number, values in enumerate(states, 1):
            at = put(saver, configs[-1] if configs else CONFIG, number, values)
            versions: Any = dict.fromkeys(values, number)
            checkpoint = empty_checkpoint() | {
                "id": at["configurable"]["checkpoint_id"],
                "channel_values": deepcopy(values),
                "channel_versions": versions,
            }
            reference.put(CONFIG, checkpoint, {}, versions)
            configs.append(at)
            assert form(read(saver, at)) == form(read(reference, at)), f"state {number}, at once"
            spoil(read(saver, at))
        for again in (saver, saver, cold()):
            for number, at in enumerate(configs, 1):
                found = read(again, at)
                assert_same(form(read(reference, at)), form(found), f"state {number}")
                spoil(found)
        saver.prune(["t"])
        found = read(cold(), CONFIG)
        assert_same(form(read(reference, configs[-1])), form(found), "the last, pruned")
        assert examine(saver).ok


EDITS = ["content", "flag", "deep", "metadata", "call", "name", "attribute"]
WAYS = ["append", "edit", "drop first", "drop last", "replace", "turn", "copy", "as before"]


@st.composite
def message_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A message list after each of some changes; unchanged messages are the same objects."""
    messages = [one.message() for one in draw(st.lists(said, min_size=1, max_size=6))]
    states = [messages]
    for _ in range(draw(st.integers(1, 5))):
        match draw(st.sampled_from(WAYS)):
            case "append":
                messages = [*messages, draw(said).message()]
            case "edit" if messages:
                messages = deepcopy(messages)
                edit(draw(st.sampled_from(messages)), draw(st.sampled_from(EDITS)))
            case "drop first":
                messages = messages[1:]
            case "drop last":
                messages = messages[:-1]
            case "replace" if messages:
                messages = [draw(said).message(), *messages[1:]]
            case "turn":
                messages = messages[::-1]
            case "copy":
                messages = deepcopy(messages)
            case _:
                messages = list(states[0])
        states.append(messages)
    return [{"messages": one} for one in states]


@given(message_lists())
def test_each_state_of_a_list_of_messages_comes_back(states: list[dict[str, Any]]) -> None:
    assert_states(states)


ITEMS = st.sampled_from([True, 1, 1.0, None, "", [1], [True], {"a": 1}])


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A large dict and a large list after each of some changes."""
    table: dict[str, Any] = {f"key {at:02} {'k' * 120}": [at, "x" * 60] for at in range(12)}
    rows: list[Any] = [[at, "x" * 200] for at in range(12)]
    states = [{"table": table, "rows": rows}]
    for _ in range(draw(st.integers(1, 20))):
        key, item = f"key {draw(st.integers(0, 23)):02} {'k' * 120}", draw(ITEMS)
        rest = {other: held for other, held in table.items() if other != key}
        match draw(st.sampled_from(["set", "remove", "move", "turn", "double"])):
            case "set":
                table, rows = {**table, key: item}, [*rows, item]
            case "remove":
                table, rows = rest, rows[:-1]
            case "move":
                table = {**rest, key: item}
            case "turn":
                table, rows = dict(reversed(table.items())), rows[::-1]
            case _:
                rows = [*rows, item, item]
        states.append({"table": table, "rows": rows})
    return states


@given(tables())
def test_each_state_of_a_large_dict_or_list_comes_back(states: list[dict[str, Any]]) -> None:
    assert_states(states)


def test_each_state_of_what_grows_and_changes_at_each_step_comes_back() -> None:
    table = {f"key {at}": [at, "x" * 60] for at in range(40)}
    states: list[dict[str, Any]] = [{"table": table, "rows": ["x" * 60] * 20}]
    for step in range(40):
        last = states[-1]
        states.append(
            {
                "table": {**last["table"], f"key {step * 7 % 40}": f"changed in step {step} " * 9},
                "rows": [*last["rows"], f"row {step} " * 20],
            }
        )
    assert_states(states)


@pytest.mark.parametrize("values", [(True, 1), (1, 1.0), (1.0, True), (0, False)])
def test_a_change_between_values_that_python_calls_equal_is_seen(values: tuple[Any, Any]) -> None:
    with opened() as (saver, cold):
        for held in ([values[0]], {"n": [values[0]]}):
            messages = [HumanMessage("plain"), AIMessage("rich", additional_kwargs={"k": held})]
            at = put(saver, CONFIG, 1, {"messages": messages})
            inner: Any = held["n"] if isinstance(held, dict) else held
            inner[0] = values[1]
            at = put(saver, at, 2, {"messages": messages})
            for reader in (saver, cold()):
                found = read(reader, at)["messages"][1].additional_kwargs["k"]
                assert repr(found) == repr(held)


NAMES = st.one_of(
    st.uuids(version=4).map(lambda drawn: f"1{str(drawn)[1:]}"),
    st.uuids().map(lambda drawn: str(drawn).upper()),
    st.text("0123456789abcdef-", min_size=14, max_size=16),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
)
VERSIONS = st.one_of(
    st.builds(
        lambda major, minor: f"{major:032}.{minor:.16f}", st.integers(0, 99), st.floats(0, 1)
    ),
    st.builds(lambda major, minor: f"{major:032}.{minor:016}", st.integers(0, 99), st.integers(0)),
    st.integers(0, 10_000),
    st.floats(0, 1000),
    st.text(max_size=40),
)
TIMES = st.one_of(
    st.datetimes().map(lambda drawn: f"{drawn.isoformat()}+00:00"), st.text(max_size=9)
)


@given(st.lists(st.tuples(NAMES, VERSIONS, TIMES), min_size=1, unique_by=lambda drawn: drawn[0]))
def test_ids_versions_and_times_of_any_kind_come_back_in_the_order_of_their_ids(
    drawn: list[tuple[str, Any, str]],
) -> None:
    """Ids are sorted as texts, UUIDs of today before other names of letters and digits."""
    with opened() as (saver, cold):
        put_ = {}
        for name, version, time in drawn:
            put_[name] = empty_checkpoint() | {
                "id": name,
                "ts": time,
                "channel_values": {"a": 1},
                "channel_versions": {"a": version},
                "versions_seen": {"node": {"a": version}},
            }
            saver.put(CONFIG, put_[name], {}, {"a": version})
        for reader in (saver, cold()):
            found = {one.checkpoint["id"]: one.checkpoint for one in reader.list(CONFIG)}
            assert found == put_
            for name, version, _ in drawn:
                assert type(found[name]["channel_versions"]["a"]) is type(version)
            uuids = [name for name in found if len(name) == 36 and name == name.lower()]
            assert uuids == sorted(uuids, reverse=True)


def test_the_next_version_is_higher_of_the_same_kind_and_comes_back() -> None:
    with opened() as (saver, cold):
        at, version, put_ = CONFIG, None, list[Any]()
        for number in range(50):
            before, version = version, saver.get_next_version(version, None)
            assert isinstance(version, str)
            assert before is None or version > before
            at = put(saver, at, version, {"a": number})
            put_.append(version)
        found = [one.checkpoint["channel_versions"]["a"] for one in cold().list(CONFIG)]
        assert found[::-1] == put_
        memory: Any = InMemorySaver().get_next_version(version, None)
        assert saver.get_next_version(memory, None) > memory
        assert (saver.get_next_version(3, None), saver.get_next_version(1.5, None)) == (4, 2.5)


@pytest.mark.parametrize("objects", [["Lamp", None], [], [2**70], [[1], {"a": 2}]], ids=repr)
def test_an_array_of_objects_reads_as_nothing_and_damages_nothing(objects: list[Any]) -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.empty(len(objects), dtype=object)
    array[:] = objects
    for saver in (DeltaSaver(":memory:"), InMemorySaver()):
        said = [ToolMessage("found", tool_call_id="c", artifact=array, id="m")]
        at = put(saver, CONFIG, 1, {"rows": array, "messages": said, "kept": 1})
        saver.put_writes(at, [("rows", array)], "task")
        if isinstance(saver, DeltaSaver):
            saver.log.caches.forget()
            assert [one for one in examine(saver).findings if one.severity != "note"] == []
        state = read(saver, at)
        assert (state["rows"], state["kept"], state["messages"][0].artifact) == (None, 1, None)
        assert saver.get_tuple(at).pending_writes == [("task", "rows", None)]  # type: ignore[union-attr]


def test_arrays_of_numbers_texts_and_times_come_back(url: str) -> None:
    numpy = pytest.importorskip("numpy")
    kinds = ("int8", "uint16", ">i4", "float16", ">f8", "longdouble", "complex64", "bool")
    arrays = [numpy.zeros((2, 6), dtype=kind) for kind in kinds]
    # LangGraph packs times where they do not stand in one piece.
    arrays += [array[:, ::2] for array in (*arrays, numpy.zeros((2, 6), dtype="M8[s]"))]
    arrays += [numpy.array(["a", "ünï"]), numpy.array([b"a"]), numpy.zeros((0, 4))]
    with DeltaSaver.open(url) as saver:
        at = put(saver, CONFIG, 1, {"arrays": arrays})
    with DeltaSaver.open(url) as saver:
        for put_, found in zip(arrays, read(saver, at)["arrays"], strict=True):
            assert found.dtype == put_.dtype
            assert numpy.array_equal(found, put_)
        assert examine(saver).ok


class Meddling:
    """Is packed by Python code, as a model is, and changes its container meanwhile."""

    def __init__(self, container: Any) -> None:
        self.container, self.times = container, count()

    def model_dump(self) -> dict[str, Any]:
        if next(self.times) == 0:
            if isinstance(self.container, list):
                self.container.append("late")
            else:
                self.container["key 3"] = "changed"
        return {"plain": "x" * 200}


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_what_changes_while_it_is_stored_is_stored_and_read_without_damage(
    kind: str, url: str
) -> None:
    value: Any = {f"key {number}": "x" * 200 for number in range(20)}
    if kind == "list":
        value = list(value.values())
        value.append(Meddling(value))
    else:
        value["last"] = Meddling(value)
    with DeltaSaver.open(url) as saver:
        put(saver, CONFIG, 1, {"held": value})
    with DeltaSaver.open(url) as saver:
        assert len(read(saver, CONFIG)["held"]) in (21, 22)
        assert examine(saver).ok
