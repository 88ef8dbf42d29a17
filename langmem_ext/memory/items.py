"""Where memories are kept in a store: namespaces by kind and owner.

| namespace, below `memory` | key | value |
|---|---|---|
| `threads`, owner | thread id | the memory of a conversation |
| `failures`, owner | thread id | why the last generation wrote none |
| `read`, owner | thread id | how far facts were looked for in it |
| `facts`, owner | a fact's id | what somebody said that lasts |
| `prompts`, name | a version's id | the text of a prompt |

A label of a namespace holds no dot, and no label is empty; an owner may be an e-mail address, and a
thread may have no owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from langgraph.store.base import BaseStore, Item, PutOp, SearchItem

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import owner_key
from langmem_ext.memory.calls import Call, Steps
from langmem_ext.store.operations import SourceThread
from langmem_ext.store.planning import on_threads
from langmem_ext.store.store import DeltaStore

Namespace: TypeAlias = tuple[str, ...]

ROOT: Final[Namespace] = ("memory",)
"""The namespace that all others are below, unless an application names another one."""

PAGE: Final = 100
"""Items that are read at once."""

_NOBODY: Final = "%"


def label_of(name: str | None) -> str:
    """A name as the label of a namespace; None is the label of those without an owner.

    >>> label_of("ann@example.org"), label_of("50%"), label_of(None)
    ('ann@example%2Eorg', '50%25', '%')
    """
    return _NOBODY if name is None else name.replace("%", "%25").replace(".", "%2E")


class OwnedStores:
    """A store, and the same bound to an owner, or to nobody, where it can be.

    A `DeltaStore` then marks items as their owner's, and reads no others.

    Args:
        store: The store.

    Raises:
        InvalidInput: It is no store.
    """

    def __init__(self, store: BaseStore) -> None:
        if not isinstance(store, BaseStore):
            raise InvalidInput(
                f"{type(store).__name__} is no store: of a saver, pass DeltaStore(saver)"
            )
        self.store = store
        self._bound: dict[str | None, BaseStore] = {}

    def of(self, owner: str | None) -> BaseStore:
        """The store that has an owner's items, or those of nobody."""
        store = self.store
        if not isinstance(store, DeltaStore) or store.owner is not None:
            return store
        if owner not in self._bound:
            self._bound[owner] = store.for_nobody() if owner is None else store.for_owner(owner)
        return self._bound[owner]

    async def aclaimed(self, place: Namespace, key: str, owner: object = None) -> Item | None:
        """An item that names its owner, where it is that owner's: anybody may name another.

        Args:
            place: Its namespace.
            key: Its key.
            owner: Whose it is; None for nobody's, or else for anyone's.
        """
        if owner is None and (found := await self.store.aget(place, key, refresh_ttl=False)):
            owner = found.value.get("owner")
        try:
            store = self.of(owner_key(owner))
        except InvalidInput:
            return None
        item = await store.aget(place, key, refresh_ttl=False)
        return item if item is not None and item.value.get("owner") == owner else None


def with_sources(store: BaseStore, put: PutOp, threads: Iterable[SourceThread]) -> PutOp:
    """A put whose item goes with its threads, in a store that can do that."""
    return on_threads(put, threads) if isinstance(store, DeltaStore) else put


def items_below(store: BaseStore, namespace: Namespace, **wanted: Any) -> Steps[list[SearchItem]]:
    """All items of a namespace and those below it, read in pages.

    Args:
        store: The store.
        namespace: Where they are.
        wanted: What `search` takes besides.
    """
    items: list[SearchItem] = []
    while True:
        page: list[SearchItem] = yield Call(
            store, "search", namespace, limit=PAGE, offset=len(items), refresh_ttl=False, **wanted
        )
        items += page
        if len(page) < PAGE:
            return items


def in_pages(items: list[Any], size: int) -> Iterator[list[Any]]:
    """The items in groups of at most `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))
