"""Random programs, each run on a store and on LangGraph's `InMemoryStore`, call by call.

A program follows from its number alone. One that shows a difference is made shorter, call by call,
as long as it still does. What the contract leaves open is not compared: the order of a search, and
of what a limit leaves out; names of errors; times. What InMemoryStore does and nobody should copy
is not asked for, or not believed: its namespaces without items, and comparisons by size of what is
no number.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any, Final, TypeAlias

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from subject import Caller, RuleBroken, Stores

NAMESPACES: Final = (
    ("a",),
    ("ab",),
    ("a", "b"),
    ("a_",),
    ("A",),
    ("a%", "b"),
    ("b", "a", "b"),
    ("é\U0001f600",),
)
INVALID: Final = (("a.b",), ("",), (), ("langgraph",), ("a\0b",))
"""Namespaces that a put refuses."""

KEYS: Final = ("k", "K", "k k", 'k"', "k'%", "ключ", "")
FIELDS: Final = ("n", "f", "o", "t", "nul", "a.b", "x y", "it's", 'q"', "$.n")
SCALARS: Final = (
    *(0, 1, -1, 9, 10, 9.5, 10.0, 0.1, 1e300, 2**53, 2**53 + 1, 2**70, -(2**63), True, False, None),
    *("", "9", "10", "x", "x%", "é", "1", "true", "2026-01-01", 'a"b', "a\\b", "\ud800", "a\0b"),
)
NUMBERS: Final = (0, 1, 9, 9.5, 10, 10.0, -1, 2**53 + 1, 0.1, 1e300, True)

Step: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A call: the method, and what it is given."""

EVERYTHING: Final = 10_000
"""A limit that leaves nothing out."""


def program(number: int, length: int = 25) -> list[Step]:
    """The calls of a program."""
    random = Random(number)
    return [_step(random) for _ in range(length)]


def check_program(stores: Stores, number: int) -> None:
    """See that a program ends as on InMemoryStore.

    Raises:
        RuleBroken: It does not; the message has the shortest program found that shows it.
    """
    steps = program(number)
    problem = _difference(stores, steps)
    if problem is None:
        return
    shorter = True
    while shorter:
        shorter = False
        for at in reversed(range(len(steps))):
            less = steps[:at] + steps[at + 1 :]
            if (difference := _difference(stores, less)) is not None:
                steps, problem, shorter = less, difference, True
    calls = "\n".join(f"  {_shown(step)}" for step in steps)
    raise RuleBroken(f"program {number} differs from InMemoryStore: {problem}\n{calls}")


def _difference(stores: Stores, steps: Sequence[Step]) -> str | None:
    """What the first call that differs gives; None where none does."""
    reference = InMemoryStore()
    with stores.new() as subject:
        for step in steps:
            name, arguments, options = copy.deepcopy(step)
            before = _with_items_alone(reference)
            wanted = _outcome(lambda: getattr(reference, name)(*arguments, **options))  # noqa: B023
            wanted = _corrected(before, step, wanted)
            actual = _outcome(lambda: getattr(subject, name)(*arguments, **options))  # noqa: B023
            if problem := _compare(subject, step, actual, wanted):
                return f"{_shown(step)} gives {problem}"
    return None


def _shown(step: Step) -> str:
    name, arguments, options = step
    parts = [repr(value) for value in arguments] + [
        f"{key}={value!r}" for key, value in options.items()
    ]
    return f"{name}({', '.join(parts)})"


# -- making ------------------------------------------------------------------------------------


def _step(random: Random) -> Step:
    kind = random.choices(
        ("put", "delete", "get", "search", "list", "batch", "invalid"), (9, 2, 3, 6, 2, 3, 0.5)
    )[0]
    if kind == "put":
        return "put", (random.choice(NAMESPACES), random.choice(KEYS), _value(random)), {}
    if kind == "invalid":
        return "put", (random.choice(INVALID), "k", {"n": 1}), {}
    if kind in ("delete", "get"):
        return kind, (random.choice(NAMESPACES), random.choice(KEYS)), {}
    if kind == "search":
        return "search", (_prefix(random),), _search_options(random)
    if kind == "list":
        return "list_namespaces", (), _list_options(random)
    return "batch", ([_op(random) for _ in range(3)],), {}


def _op(random: Random) -> Op:
    kind = random.choice(("put", "put", "put", "get", "search", "list", "delete"))
    namespace, key = random.choice(NAMESPACES), random.choice(KEYS)
    if kind == "put":
        return PutOp(namespace, key, _value(random))
    if kind == "delete":
        return PutOp(namespace, key, None)
    if kind == "get":
        return GetOp(namespace, key)
    if kind == "search":
        return SearchOp(_prefix(random), _filter(random), EVERYTHING, 0)
    return ListNamespacesOp((MatchCondition("prefix", _pattern(random)),), None, EVERYTHING, 0)


def _prefix(random: Random) -> tuple[str, ...]:
    namespace = random.choice(NAMESPACES)
    return namespace[: random.randint(0, len(namespace))]


def _pattern(random: Random) -> tuple[str, ...]:
    labels = random.choice(NAMESPACES)
    part = labels[: random.randint(1, len(labels))] if random.random() < 0.5 else labels
    return tuple("*" if random.random() < 0.3 else label for label in part)


def _search_options(random: Random) -> dict[str, Any]:
    options: dict[str, Any] = {"limit": random.choice((EVERYTHING, EVERYTHING, 0, 1, 3))}
    if random.random() < 0.3:
        options["offset"] = random.randint(0, 4)
    if random.random() < 0.7:
        options["filter"] = _filter(random)
    return options


def _list_options(random: Random) -> dict[str, Any]:
    options: dict[str, Any] = {"limit": random.choice((EVERYTHING, 0, 2)), "offset": 0}
    for name in ("prefix", "suffix"):
        if random.random() < 0.4:
            options[name] = _pattern(random)
    if random.random() < 0.4:
        options["max_depth"] = random.randint(0, 3)
    if random.random() < 0.3:
        options["offset"] = random.randint(0, 3)
    return options


def _value(random: Random) -> dict[str, Any]:
    names = random.sample(FIELDS[1:], random.randint(0, 4))
    value = {name: _any_value(random, 2) for name in names}
    if "o" in value:
        value["o"] = {"k": random.choice(NUMBERS), "j": random.choice(SCALARS)}
    return {"n": random.choice(NUMBERS), **value}


def _any_value(random: Random, depth: int) -> Any:
    kind = random.random()
    if depth == 0 or kind < 0.6:
        return random.choice(SCALARS)
    if kind < 0.8:
        return [_any_value(random, depth - 1) for _ in range(random.randint(0, 2))]
    return {random.choice(FIELDS): _any_value(random, depth - 1) for _ in range(2)}


def _filter(random: Random) -> dict[str, Any]:
    return dict(_condition(random) for _ in range(random.choice((1, 1, 1, 2))))


def _condition(random: Random) -> tuple[str, Any]:
    kind = random.random()
    if kind < 0.35:
        names = random.sample(("$gt", "$gte", "$lt", "$lte"), random.choice((1, 1, 2)))
        return "n", {name: random.choice(NUMBERS) for name in names}
    if kind < 0.45:
        return "o", {"k": {random.choice(("$gt", "$lte", "$ne")): random.choice(NUMBERS)}}
    name = random.choice((*FIELDS, "missing"))
    if kind < 0.65:
        return name, {random.choice(("$eq", "$ne")): _any_value(random, 1)}
    return name, _any_wanted(random)


def _any_wanted(random: Random) -> Any:
    """A bare value; a dict in it names no operator."""
    value = _any_value(random, 1)
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if not name.startswith("$")}
    return value


# -- comparing ---------------------------------------------------------------------------------

RAISED: Final = "an error"


def _outcome(call: Any) -> Any:
    try:
        return call()
    except Exception:  # what it is called is each store's own affair
        return RAISED


def _corrected(before: InMemoryStore, step: Step, wanted: Any) -> Any:
    """What InMemoryStore would say if it had no namespaces without items."""
    name, arguments, options = step
    if name == "list_namespaces" and wanted != RAISED:
        return before.list_namespaces(**options)
    if name == "batch" and wanted != RAISED:
        return [
            before.batch([op])[0] if isinstance(op, ListNamespacesOp) else answer
            for op, answer in zip(arguments[0], wanted, strict=True)
        ]
    return wanted


def _with_items_alone(reference: InMemoryStore) -> InMemoryStore:
    copied = InMemoryStore()
    for item in reference.search((), limit=EVERYTHING):
        copied.put(item.namespace, item.key, item.value)
    return copied


def _compare(subject: Caller, step: Step, actual: Any, wanted: Any) -> str | None:
    name, arguments, options = step
    if name == "search" and actual != RAISED and wanted != RAISED:
        return _compare_search(subject, arguments[0], options, actual, wanted)
    plain, right = _plain(actual), _plain(wanted)
    return None if plain == right else f"{plain!r} instead of {right!r}"


def _compare_search(
    subject: Caller, prefix: tuple[str, ...], options: dict[str, Any], actual: Any, wanted: Any
) -> str | None:
    """A part of what there is may be another part than InMemoryStore's, of the same size."""
    if len(actual) != len(wanted):
        return f"{_plain(actual)!r} instead of {_plain(wanted)!r}"
    if options["limit"] == EVERYTHING and not options.get("offset"):
        plain, right = _plain(actual), _plain(wanted)
        return None if plain == right else f"{plain!r} instead of {right!r}"
    without = {name: value for name, value in options.items() if name == "filter"}
    everything = _plain(subject.search(prefix, limit=EVERYTHING, **without))
    strange = [item for item in _plain(actual) if item not in everything]
    return f"{strange!r}, which is not among all" if strange else None


def _plain(result: Any) -> Any:
    """A result without its times, and without the order of a search."""
    if isinstance(result, list):
        parts = [_plain(part) for part in result]
        if result and hasattr(result[0], "score"):
            return sorted(parts, key=repr)
        return parts
    if hasattr(result, "namespace"):
        return (tuple(result.namespace), result.key, _typed(result.value))
    return result


def _typed(value: Any) -> Any:
    """A value in which `1`, `1.0` and `True` differ."""
    if isinstance(value, dict):
        return {key: _typed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_typed(part) for part in value]
    return (type(value).__name__, value)
