"""The conformance suite finds each of these defects, put into a store that has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from clock import Clock
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from store_suite import run_store_suite
from stores import maker

from langmem_ext import DeltaStore, MessageLog
from langmem_ext.store import filters, names, operations, planning, statements, store, values

Patch = pytest.MonkeyPatch


def take_look_alikes_for_a_prefix(patch: Patch) -> None:
    patch.setattr(operations, "end_of", lambda path: path[:-1] + b"\xff")


def find_nothing_where_a_key_is_missing(patch: Patch) -> None:
    passes = filters.passes
    patch.setattr(
        operations,
        "passes",
        lambda value, wanted: wanted.keys() <= value.keys() and passes(value, wanted),
    )


def compare_numbers_as_texts(patch: Patch) -> None:
    ordered = {
        name: lambda one, other, compare=compare: compare(str(one), str(other))
        for name, compare in filters._ORDERED.items()
    }
    patch.setattr(filters, "_ORDERED", ordered)


def let_sql_narrow_too_much(patch: Patch) -> None:
    patch.setattr(filters, "_EXACT", 1 << 80)
    patch.setattr(values, "_UNUSUAL", values.re.compile("NaN"))
    patch.setattr(filters, "truth", lambda at: "plain = 2")
    patch.setattr(filters, "_SLACK", -0.1)


def read_the_batch_s_own_puts(patch: Patch) -> None:
    def batch(self: DeltaStore, ops: Iterable[Op]) -> list[Result]:
        return [original(self, [op])[0] for op in ops]

    original = DeltaStore.batch
    patch.setattr(DeltaStore, "batch", batch)


def keep_what_was_put_first(patch: Patch) -> None:
    original = planning.plan_batch

    def plan(ops: Iterable[Op], index: Any) -> Any:
        given = list(ops)
        return original(
            reversed(given) if all(isinstance(op, PutOp) for op in given) else given, index
        )

    patch.setattr(store, "plan_batch", plan)


def skip_an_item_between_pages(patch: Patch) -> None:
    patch.setattr(operations, "PAGE", 7)
    patch.setattr(
        statements, "SELECT_PAGE", statements.SELECT_PAGE.replace(":after)", ":after + 1)")
    )
    patch.setattr(
        statements,
        "SELECT_SOME",
        statements.SELECT_SOME.replace("OFFSET :offset", "OFFSET :offset + (:offset > 6)"),
    )


def return_what_has_expired(patch: Patch) -> None:
    for name in ("SELECT_ITEM", "SELECT_SOME", "SELECT_PAGE"):
        patch.setattr(
            statements,
            name,
            getattr(statements, name).replace(
                "expires_at > :now", "expires_at > :now OR expires_at > 0"
            ),
        )


def begin_the_time_anew_with_every_read(patch: Patch) -> None:
    original = planning.plan_batch

    def plan(ops: Iterable[Op], index: Any) -> Any:
        planned = original(ops, index)
        planned.steps = [
            replace(step, refresh=True) if hasattr(step, "refresh") else step
            for step in planned.steps
        ]
        return planned

    patch.setattr(store, "plan_batch", plan)


def leave_the_former_vectors(patch: Patch) -> None:
    patch.setattr(
        operations,
        "DELETE_VECTORS",
        "DELETE FROM store_vector WHERE item = :item AND vector IS NULL",
    )


def make_keys_of_one_case(patch: Patch) -> None:
    patch.setattr(planning, "bytes_of", lambda key: names.bytes_of(key.lower()))


DEFECTS: dict[Callable[[Patch], None], str] = {
    take_look_alikes_for_a_prefix: "a prefix is of whole labels",
    find_nothing_where_a_key_is_missing: "none matches what is missing",
    compare_numbers_as_texts: "numbers are compared by size",
    let_sql_narrow_too_much: "numbers are compared by size",
    read_the_batch_s_own_puts: "a batch reads what was there before it",
    keep_what_was_put_first: "of two puts of a key the last counts",
    skip_an_item_between_pages: "pages hold each item once",
    return_what_has_expired: "what has expired is not there",
    begin_the_time_anew_with_every_read: "reading begins the time anew where that is asked",
    leave_the_former_vectors: "a put replaces what is found",
    make_keys_of_one_case: "any text is a key",
}
"""Each with the rule that it breaks."""

IN_PROGRAMS = frozenset(DEFECTS) - {
    skip_an_item_between_pages,
    return_what_has_expired,
    begin_the_time_anew_with_every_read,
    leave_the_former_vectors,
}
"""Those that random programs find as well; they know no time and no vectors, and fill no page."""


@pytest.fixture(scope="module")
def memory() -> MessageLog:
    return MessageLog.open(":memory:")


@pytest.mark.slow
@pytest.mark.parametrize("put_in", DEFECTS, ids=lambda one: one.__name__)
def test_a_defect_is_found(
    put_in: Callable[[Patch], None], memory: MessageLog, clock: Clock, monkeypatch: Patch
) -> None:
    put_in(monkeypatch)
    report = run_store_suite(
        maker(memory), programs=40, advance=lambda minutes: clock.wait(minutes=minutes)
    )
    found = {result.name for result in report.failed}
    assert DEFECTS[put_in] in found
    assert any(name.startswith("program") for name in found) == (put_in in IN_PROGRAMS)
    assert (
        len([result for result in report.results if result.problem is None]) > 60
    )  # all else works


def test_what_in_memory_store_does_by_accident_is_all_that_it_does_otherwise() -> None:
    report = run_store_suite(
        lambda index=None: InMemoryStore(index=index),
        capabilities={"index", "order", "async"},
        programs=0,
    )
    assert sorted({result.name for result in report.failed}) == [
        "a batch that raises changes nothing",
        "a namespace is there while it has items",
        "a put replaces what is found",
        "equal texts in one batch are both found",
        "sizes of different kinds are not compared",
        "vectors of a wrong length are refused",
        "what cannot be stored is refused",
        "what was returned can be changed",
    ]


def test_a_program_that_differs_is_shown_as_short_as_it_can_be(
    memory: MessageLog, clock: Clock, monkeypatch: Patch
) -> None:
    make_keys_of_one_case(monkeypatch)
    report = run_store_suite(
        maker(memory), programs=40, advance=lambda minutes: clock.wait(minutes=minutes)
    )
    problems = [
        result.problem or "" for result in report.failed if result.name.startswith("program")
    ]
    assert problems
    assert min(problem.count("\n") for problem in problems) <= 2
