"""Promise: the message cache changes speed only: packing is exact, loading gives new objects."""

from __future__ import annotations

import gc
from copy import deepcopy
from typing import Any

import pytest
from comparison import Names
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from mutations import edit, spoil
from samples import said

from langmem_ext.log.codec import codec_of
from langmem_ext.log.message_cache import AT_ONCE
from langmem_ext.log.restore import DataSerializer
from langmem_ext.messages.snapshot import CLASSES
from langmem_ext.storage.cache import KnownList
from langmem_ext.types import PackedValue

EDITS = st.sampled_from(["content", "flag", "deep", "metadata", "call", "name", "attribute"])


class Pair:
    """A codec, with what is remembered of a list, and without."""

    def __init__(self) -> None:
        self.plain = codec_of(DataSerializer())
        self.known: KnownList | None = None

    def pack(self, messages: list[BaseMessage]) -> PackedValue:
        """Pack a list where the one stood that was packed before."""
        packed = self.plain.pack_value(messages, known=self.known)
        self.known = KnownList(packed.messages, (), (), [None], templates=packed.templates)
        return packed

    def load(self, packed: PackedValue) -> Any:
        """Load a list by what is remembered of it."""
        self.known = self.known or KnownList(packed.messages, (), (), [None])
        return self.plain.load_value(PackedValue(messages=packed.messages, known=self.known))

    def check(self, messages: list[BaseMessage]) -> None:
        """Pack and load on both, three times over: what was loaded before is spoiled meanwhile."""
        if not messages:
            return
        exact = self.plain.pack_value(messages)
        assert self.pack(messages) == exact
        expected = Names(keep=True).form(self.plain.load_value(exact))
        for _ in range(3):
            loaded = self.load(exact)
            assert Names(keep=True).form(loaded) == expected
            assert [message.model_fields_set for message in loaded] == [
                message.model_fields_set for message in self.plain.load_value(exact)
            ]
            spoil(loaded)


@st.composite
def changed_lists(draw: st.DrawFn) -> list[list[BaseMessage]]:
    """A message list after each of some changes; unchanged messages are the same objects."""
    messages = [one.message() for one in draw(st.lists(said, min_size=1, max_size=6))]
    stages = [list(messages)]
    for _ in range(draw(st.integers(1, 5))):
        match draw(
            st.sampled_from(
                [
                    "append",
                    "edit",
                    "drop first",
                    "drop last",
                    "replace",
                    "turn",
                    "copy",
                    "as before",
                ]
            )
        ):
            case "append":
                messages = [*messages, draw(said).message()]
            case "edit" if messages:
                messages = deepcopy(messages)
                edit(draw(st.sampled_from(messages)), draw(EDITS))
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
                messages = list(stages[0])
        stages.append(list(messages))
    return stages


@settings(max_examples=150)
@given(changed_lists())
def test_a_list_is_packed_and_loaded_as_if_nothing_were_remembered(
    stages: list[list[BaseMessage]],
) -> None:
    pair = Pair()
    for messages in stages:
        pair.check(messages)


@pytest.mark.parametrize("values", [(True, 1), (1, 1.0), (1.0, True), (0, False)])
def test_a_change_between_values_that_python_calls_equal_is_seen(values: tuple[Any, Any]) -> None:
    pair = Pair()
    for depth in ({"n": values[0]}, {"deep": {"n": [values[0]]}}):
        messages: list[BaseMessage] = [
            HumanMessage("plain"),
            AIMessage("rich", additional_kwargs=depth),
            ToolMessage("x", tool_call_id="1"),
        ]
        pair.check(messages)
        inner: Any = messages[1].additional_kwargs
        if "deep" in inner:
            inner["deep"]["n"][0] = values[1]
        else:
            inner["n"] = values[1]
        pair.check(messages)


def test_an_attribute_beyond_the_fields_and_one_that_cannot_be_compared_are_seen() -> None:
    pair = Pair()
    message = HumanMessage("x")
    pair.check([message])
    message.mark = "m"  # type: ignore[attr-defined]  # extra fields are allowed
    pair.check([message])

    class Incomparable(str):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = str.__hash__

    message = HumanMessage("x")
    message.content = Incomparable("x")
    assert pair.pack([message]) == pair.plain.pack_value([message])


def test_a_message_of_each_class_is_copied_whole() -> None:
    pair = Pair()
    extra = {"tool_call_id": "1", "role": "r", "name": "n"}
    for cls in CLASSES:
        pair.check(
            [
                cls(
                    content="x",
                    id="i",
                    **{name: extra[name] for name in extra if name in cls.model_fields},
                )
            ]
        )


def test_a_cached_message_is_one_object_for_the_garbage_collector_shared_by_no_copy() -> None:
    pair = Pair()
    messages = [AIMessage(f"answer {number}", id=str(number)) for number in range(1000)]
    gc.collect()
    before = len(gc.get_objects())
    packed = pair.pack(messages[:AT_ONCE])
    gc.collect()
    assert len(gc.get_objects()) - before < 1.1 * AT_ONCE + 50
    loaded = pair.load(packed) + pair.load(packed)
    for name in ("tool_calls", "invalid_tool_calls", "additional_kwargs", "response_metadata"):
        assert len({id(getattr(message, name)) for message in loaded}) == len(loaded)


def test_a_message_that_is_given_a_field_of_its_own_changes_no_other_load() -> None:
    pair = Pair()
    packed = pair.plain.pack_value([HumanMessage("a", id="1"), HumanMessage("b", id="2")])
    first, second = pair.load(packed), pair.load(packed)
    before = [message.model_dump(exclude_unset=True) for message in first]
    first[0].mark = "seen"
    assert first[0].mark == "seen"
    assert first[0].model_dump(exclude_unset=True) == {**before[0], "mark": "seen"}
    assert first[1].model_dump(exclude_unset=True) == before[1]
    third = pair.load(packed)
    for other in (second, third):
        assert [message.model_fields_set for message in other] == [
            set(HumanMessage.model_fields)
        ] * 2
        assert [message.model_dump(exclude_unset=True) for message in other] == before
