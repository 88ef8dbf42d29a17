"""A store under test: called by its sync methods, or by their async twins on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langgraph.store.base import BaseStore, IndexConfig, Item, Op, SearchItem, TTLConfig

Mode: TypeAlias = Literal["sync", "async"]
MakeStore: TypeAlias = Callable[..., BaseStore | AbstractContextManager[BaseStore]]
"""Makes a new, empty store, or opens one for the length of a `with`: `make_store(index=, ttl=)`."""


class RuleBroken(AssertionError):
    """A store does not do what the contract says; the message says what it did."""


def expect(actual: object, wanted: object, what: str) -> None:
    """See that something is as the contract has it.

    Raises:
        RuleBroken: It is not.
    """
    if actual != wanted:
        raise RuleBroken(f"{what}: {actual!r} instead of {wanted!r}")


def expect_raised(call: Callable[[], object], what: str) -> None:
    """See that a call raises.

    Raises:
        RuleBroken: It does not.
    """
    try:
        answer = call()
    except Exception:  # whatever the store calls it
        return
    raise RuleBroken(f"{what}: {answer!r} instead of an error")


class Caller:
    """Calls a store as an application would, in one of the two ways.

    Args:
        store: The store.
        mode: `sync`, or `async`: then each call is awaited on one event loop.
        runner: The event loop.
    """

    def __init__(self, store: BaseStore, mode: Mode, runner: asyncio.Runner) -> None:
        self.store = store
        self._mode = mode
        self._runner = runner

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self._mode == "sync":
            return getattr(self.store, name)(*arguments, **options)
        return self._runner.run(_awaited(getattr(self.store, f"a{name}"), arguments, options))

    def put(self, namespace: tuple[str, ...], key: str, value: Any, **options: Any) -> None:
        """`put`, or `aput`."""
        self._call("put", namespace, key, value, **options)

    def get(self, namespace: tuple[str, ...], key: str, **options: Any) -> Item | None:
        """`get`, or `aget`."""
        item: Item | None = self._call("get", namespace, key, **options)
        return item

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """`delete`, or `adelete`."""
        self._call("delete", namespace, key)

    def search(self, prefix: tuple[str, ...], **options: Any) -> list[SearchItem]:
        """`search`, or `asearch`."""
        return list(self._call("search", prefix, **options))

    def list_namespaces(self, **options: Any) -> list[tuple[str, ...]]:
        """`list_namespaces`, or `alist_namespaces`."""
        return list(self._call("list_namespaces", **options))

    def batch(self, ops: list[Op]) -> list[Any]:
        """`batch`, or `abatch`."""
        return list(self._call("batch", ops))

    def keys(self, prefix: tuple[str, ...], **options: Any) -> list[str]:
        """The keys that a search finds."""
        return [item.key for item in self.search(prefix, **options)]


async def _awaited(function: Callable[..., Any], arguments: Any, options: Any) -> Any:
    return await function(*arguments, **options)


@dataclass(frozen=True)
class Stores:
    """Where a rule gets its stores from.

    Attributes:
        make_store: Makes a new, empty store.
        mode: How it is called.
        advance: Lets so many minutes pass, for the store; None: rules about time are left out.
        minute: What these rules take for a minute, in minutes.
    """

    make_store: MakeStore
    mode: Mode = "sync"
    advance: Callable[[float], None] | None = None
    minute: float = 1.0

    @contextmanager
    def new(
        self, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Iterator[Caller]:
        """A new, empty store, closed at the end."""
        options: dict[str, Any] = {"index": index, "ttl": ttl}
        made = self.make_store(
            **{name: value for name, value in options.items() if value is not None}
        )
        opened = nullcontext(made) if isinstance(made, BaseStore) else made
        with ExitStack() as stack:
            store = stack.enter_context(opened)
            runner = stack.enter_context(asyncio.Runner())
            yield Caller(store, self.mode, runner)

    def wait(self, minutes: float) -> None:
        """Let minutes of the rule pass."""
        if self.advance is not None:
            self.advance(minutes * self.minute)
