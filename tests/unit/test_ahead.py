"""Promise: messages that are built ahead are given to one reader, and only if they are what is stored."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langmem_ext.ahead import Ahead, plan_ahead
from langmem_ext.codec import MessageCodec, codec_of
from langmem_ext.serde import DataSerializer
from langmem_ext.templates import LONG, MAX_LISTS, TemplateCache
from langmem_ext.types import PackedValue

PLACE = ("t", "", "messages")
MANY: list[BaseMessage] = [
    AIMessage(f"answer {at}", id=f"a{at}", response_metadata={"n": at}) if at % 2 else HumanMessage(f"question {at}", id=f"h{at}")
    for at in range(LONG + 1)
]


@pytest.fixture
def templates() -> TemplateCache:
    return TemplateCache(1 << 24)


@pytest.fixture
def codec(templates: TemplateCache) -> MessageCodec:
    return codec_of(DataSerializer(), templates)


def build(codec: MessageCodec, templates: TemplateCache, messages: Sequence[BaseMessage] = MANY) -> tuple[Ahead, PackedValue]:
    packed = codec.pack_value(list(messages), place=PLACE)
    plan = plan_ahead(codec, templates, "t", "")
    built = None if plan is None else plan()
    assert built is not None
    return built, packed


def test_the_messages_are_given_once_and_are_nobody_elses(codec: MessageCodec, templates: TemplateCache) -> None:
    built, packed = build(codec, templates)
    taken = built.take(PLACE, packed)
    assert taken == MANY
    assert not {*map(id, taken)} & {*map(id, MANY)}
    assert built.take(PLACE, packed) is None
    assert codec.load_value(packed, PLACE) == MANY


def test_of_a_list_that_became_shorter_its_beginning_is_given(codec: MessageCodec, templates: TemplateCache) -> None:
    built, packed = build(codec, templates)
    assert built.take(PLACE, PackedValue(messages=packed.messages[:10])) == MANY[:10]


def test_nothing_is_given_of_what_has_changed_or_stands_elsewhere(codec: MessageCodec, templates: TemplateCache) -> None:
    built, packed = build(codec, templates)
    other = codec.pack_messages([HumanMessage("another", id="h0")])
    for value in (
        PackedValue(messages=[*packed.messages, *other]),
        PackedValue(messages=[*other, *packed.messages[1:]]),
        PackedValue(messages=packed.messages, body=b"\x90"),
    ):
        assert built.take(PLACE, value) is None
    for place in (("t", "", "other"), ("t", "sub", "messages"), ("u", "", "messages")):
        assert built.take(place, packed) is None
    assert built.take(PLACE, packed) == MANY


def test_nothing_is_built_of_few_messages_of_none_and_of_what_is_remembered_no_more(codec: MessageCodec, templates: TemplateCache) -> None:
    codec.pack_value(MANY[:LONG], place=PLACE)
    assert plan_ahead(codec, templates, "t", "") is None
    codec.pack_value(MANY, place=PLACE)
    assert plan_ahead(codec, templates, "t", "") is not None
    assert plan_ahead(codec, templates, "t", "sub") is None
    assert plan_ahead(codec, templates, "u", "") is None
    templates.forget("t")
    assert plan_ahead(codec, templates, "t", "") is None
    for number in range(MAX_LISTS + 1):
        codec.pack_value(MANY, place=(f"t{number}", "", "messages"))
    assert plan_ahead(codec, templates, "t0", "") is None
    assert plan_ahead(codec, templates, "t1", "") is not None


def test_a_list_that_cannot_be_built_is_left_to_whoever_reads_it(codec: MessageCodec, templates: TemplateCache) -> None:
    codec.pack_value(MANY, place=PLACE)
    known = templates.long_list("t", "")
    assert known is not None
    known[1][LONG - 1] = b"\xc1"
    plan = plan_ahead(codec, templates, "t", "")
    assert plan is not None
    assert plan() is None
