"""Promise: of operations that are on their way at the same time, none sees what another has left unfinished."""

from __future__ import annotations

from langmem_ext.codec import MessageCodec
from langmem_ext.serde import RestorePolicy
from langmem_ext.storage.index import Indexes, ThreadIndex

CODEC = MessageCodec(RestorePolicy())
ROW = (7, None, 0, 0, 0, 0, 1, 0, 1, 0, 0, None)


def speculating() -> Indexes:
    return Indexes(1_000_000, speculates=True)


def of(indexes: Indexes, token: object, thread: int = 7) -> ThreadIndex:
    return indexes.claiming(token, indexes.of, thread, 0, CODEC)


def row_of(indexes: Indexes, token: object) -> object:
    return indexes.claiming(token, indexes.row_of, "t")


def test_an_index_is_one_operations_until_it_is_released() -> None:
    indexes = speculating()
    mine = of(indexes, "one")
    assert of(indexes, "one") is mine
    assert of(indexes, "other") is not mine
    assert of(indexes, "other") is not of(indexes, "other")
    assert of(indexes, "other", 8) is of(indexes, "other", 8)
    indexes.release("one")
    assert of(indexes, "other") is mine


def test_what_is_kept_nowhere_counts_for_nothing() -> None:
    indexes = speculating()
    of(indexes, "one")
    apart = of(indexes, "other")
    apart.learn_word(1, b"a word")
    indexes.account(apart)
    assert indexes.size == 0
    assert apart.expected is None


def test_what_an_operation_expects_is_no_others() -> None:
    indexes = speculating()
    indexes.claiming("one", indexes.keep_row, "t", ROW)
    assert row_of(indexes, "one") == ROW
    assert row_of(indexes, "other") is None
    indexes.release("one")
    assert row_of(indexes, "other") is None, "the other may have written"
    indexes.claiming("other", indexes.keep_row, "t", ROW)
    indexes.release("other")
    assert row_of(indexes, "one") == ROW


def test_of_an_operation_that_has_come_to_nothing_nothing_is_left() -> None:
    indexes = speculating()
    before = of(indexes, "one", 8)
    indexes.release("one")
    mine = of(indexes, "one")
    indexes.claiming("one", indexes.keep_row, "t", ROW)
    indexes.forget_claimed("one")
    assert row_of(indexes, "one") is None
    assert of(indexes, "one") is not mine
    assert of(indexes, "other") is not of(indexes, "one"), "it is still the operation's, which is run again"
    assert of(indexes, "other", 8) is before


def test_without_a_token_everything_is_everyones() -> None:
    indexes = speculating()
    assert indexes.of(7, 0, CODEC) is indexes.of(7, 0, CODEC)
    indexes.keep_row("t", ROW)
    assert indexes.row_of("t") == ROW


def test_nothing_is_expected_where_nobody_asks_for_it() -> None:
    indexes = Indexes(1_000_000)
    indexes.keep_row("t", ROW)
    assert indexes.row_of("t") is None
    assert indexes.of(7, 0, CODEC).expected is None
