"""A conformance suite for LangGraph stores: each rule of the contract, and random programs.

The rules are those of `langgraph.store.base`, as `InMemoryStore` carries them out where the base
says nothing, without what it does by accident. A rule is a function of `RULES`: its name says what
is promised, its docstring says how it is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias

import finding_rules
import item_rules
import time_rules
from store_programs import check_program
from subject import MakeStore, Mode, RuleBroken, Stores

Capability: TypeAlias = Literal["ttl", "index", "order", "async"]
"""What a store may have: items that expire; vectors; an order of searches; the async methods."""

EVERYTHING: Final[frozenset[Capability]] = frozenset({"ttl", "index", "order", "async"})


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the contract.

    Attributes:
        name: What is promised.
        check: Raises `RuleBroken` where a store does not keep it.
        needs: What a store must have for it.
    """

    name: str
    check: Callable[[Stores], None]
    needs: Capability | None = None


def _rules() -> list[Rule]:
    rules = [Rule(_name(check), check) for check in item_rules.RULES]
    rules += [Rule(_name(check), check, "order") for check in item_rules.ORDER_RULES]
    rules += [Rule(_name(check), check, "index") for check in finding_rules.RULES]
    return rules + [Rule(_name(check), check, "ttl") for check in time_rules.RULES]


def _name(check: Callable[[Stores], None]) -> str:
    return check.__name__.replace("_", " ")


RULES: Final[Sequence[Rule]] = tuple(_rules())
"""All rules, in the order in which they are checked."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a rule, or of a random program.

    Attributes:
        name: The rule, or the program.
        mode: How the store was called.
        problem: What the store did instead; None: nothing else.
        skipped: Whether the store says that it does not have what the rule needs.
    """

    name: str
    mode: Mode
    problem: str | None = None
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What a store does and does not do.

    Attributes:
        results: One for each rule, mode and program.
    """

    results: Sequence[Result]

    @property
    def failed(self) -> list[Result]:
        """What the store does otherwise."""
        return [result for result in self.results if result.problem is not None]

    @property
    def passed(self) -> bool:
        """Whether there is no such thing."""
        return not self.failed

    def __str__(self) -> str:
        skipped = sum(result.skipped for result in self.results)
        counts = f"{len(self.results)} checks, {len(self.failed)} failed, {skipped} skipped"
        lines = [f"{failure.name} ({failure.mode}): {failure.problem}" for failure in self.failed]
        return "\n".join([counts, *lines])


def run_store_suite(
    make_store: MakeStore,
    *,
    capabilities: Collection[Capability] = EVERYTHING,
    programs: int = 100,
    first_program: int = 0,
    shorten: bool = True,
    advance: Callable[[float], None] | None = None,
    minute: float = 1.0,
) -> StoreReport:
    """Check a store against each rule, sync and async, and against InMemoryStore by programs.

    Args:
        make_store: Makes a new, empty store, or a context manager that opens one. It is called with
            `index=` (`IndexConfig`) and `ttl=` (`TTLConfig`) by the rules that need them.
        capabilities: What the store has. Rules that need something else are skipped.
        programs: How many random programs are run, one after the other in each mode.
        first_program: The number of the first.
        shorten: Look for the shortest program that shows a difference, for as long as that takes.
        advance: Lets so many minutes pass for the store: moves its clock, or sleeps. Without it
            the rules about time are skipped.
        minute: How long these rules take a minute to be, in minutes; make it small to sleep less.
    """
    stores = Stores(make_store, "sync", advance, minute)
    modes: list[Mode] = ["sync", "async"] if "async" in capabilities else ["sync"]
    results = []
    for mode in modes:
        for rule in RULES:
            timeless = rule.needs == "ttl" and advance is None
            if timeless or (rule.needs is not None and rule.needs not in capabilities):
                results.append(Result(rule.name, mode, skipped=True))
            else:
                results.append(_result(rule.name, rule.check, replace(stores, mode=mode)))
    for number in range(first_program, first_program + programs):
        check = partial(check_program, number=number, shorten=shorten)
        mode = modes[number % len(modes)]
        results.append(_result(f"program {number}", check, replace(stores, mode=mode)))
    return StoreReport(results)


def _result(name: str, check: Callable[[Stores], None], stores: Stores) -> Result:
    try:
        check(stores)
    except RuleBroken as broken:
        return Result(name, stores.mode, str(broken))
    except Exception as error:  # the store's own: it has not done what was asked
        return Result(name, stores.mode, f"{type(error).__name__}: {error}")
    return Result(name, stores.mode)
