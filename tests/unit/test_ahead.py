"""Promise: messages that are built ahead are given to one reader, and only if they are what is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langmem_ext.ahead import Ahead, plan_ahead
from langmem_ext.codec import MessageCodec, codec_of
from langmem_ext.log import MessageLog
from langmem_ext.serde import DataSerializer
from langmem_ext.template_cache import LONG, MAX_LISTS
from langmem_ext.types import PackedValue

PLACE = ("t", "", "messages")
MANY: list[BaseMessage] = [
    AIMessage(f"answer {at}", id=f"a{at}", response_metadata={"n": at}) if at % 2 else HumanMessage(f"question {at}", id=f"h{at}")
    for at in range(LONG + 1)
]


@pytest.fixture
def log() -> Iterator[MessageLog]:
    log = MessageLog.open(":memory:")
    log.driver.speculates = True  # as with a server, which takes its time to answer
    yield log
    log.close()


@pytest.fixture
def codec(log: MessageLog) -> MessageCodec:
    return codec_of(DataSerializer(), log.templates)


def build(log: MessageLog, codec: MessageCodec) -> tuple[Ahead, PackedValue]:
    packed = codec.pack_value(MANY, place=PLACE)
    plan = plan_ahead(log, codec, "t", "")
    built = None if plan is None else plan()
    assert built is not None
    return built, packed


def test_the_messages_are_given_once_and_are_nobody_elses(log: MessageLog, codec: MessageCodec) -> None:
    built, packed = build(log, codec)
    taken = built.take(PLACE, packed)
    assert taken == MANY
    assert not {*map(id, taken)} & {*map(id, MANY)}
    assert built.take(PLACE, packed) is None
    assert codec.load_value(packed, PLACE) == MANY


def test_of_a_list_that_became_shorter_its_beginning_is_given(log: MessageLog, codec: MessageCodec) -> None:
    built, packed = build(log, codec)
    assert built.take(PLACE, PackedValue(messages=packed.messages[:10])) == MANY[:10]


def test_nothing_is_given_of_what_has_changed_or_stands_elsewhere(log: MessageLog, codec: MessageCodec) -> None:
    built, packed = build(log, codec)
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


def test_nothing_is_built_of_few_messages_of_none_and_of_what_is_remembered_no_more(log: MessageLog, codec: MessageCodec) -> None:
    codec.pack_value(MANY[:LONG], place=PLACE)
    assert plan_ahead(log, codec, "t", "") is None
    codec.pack_value(MANY, place=PLACE)
    assert plan_ahead(log, codec, "t", "") is not None
    assert plan_ahead(log, codec, "t", "sub") is None
    assert plan_ahead(log, codec, "u", "") is None
    log.templates.forget("t")
    assert plan_ahead(log, codec, "t", "") is None
    for number in range(MAX_LISTS + 1):
        codec.pack_value(MANY, place=(f"t{number}", "", "messages"))
    assert plan_ahead(log, codec, "t0", "") is None
    assert plan_ahead(log, codec, "t1", "") is not None


def test_a_list_that_cannot_be_built_is_left_to_whoever_reads_it(log: MessageLog, codec: MessageCodec) -> None:
    codec.pack_value(MANY, place=PLACE)
    known = log.templates.long_list("t", "")
    assert known is not None
    known[1][LONG - 1] = b"\xc1"
    plan = plan_ahead(log, codec, "t", "")
    assert plan is not None
    assert plan() is None


def test_a_database_that_answers_at_once_is_not_raced(log: MessageLog, codec: MessageCodec) -> None:
    build(log, codec)
    log.driver.speculates = False
    assert plan_ahead(log, codec, "t", "") is None
