"""The routes of LangGraph's SDK for the long-term store: `get_client().store` works with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, HTTPException, Query, Response
from langgraph.store.base import Item, SearchItem
from pydantic import Field

from langmem_ext.errors import InvalidInput
from langmem_ext.memory.items import ROOT as MEMORY
from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.queue import TASKS
from langmem_ext.server.routes.threads import Body, Limit, Note, Offset
from langmem_ext.server.service import Desk

SERVERS: Final = frozenset({TASKS[0], MEMORY[0], "langmem_ext"})
"""The server stores its tasks, answers, memories, prompts and MCP key under these labels, for all
owners."""

Labels: TypeAlias = Annotated[list[str], Field(max_length=100, examples=[["users", "ann"]])]
Key: TypeAlias = Annotated[str, Field(max_length=10_000, examples=["preferences"])]


class ItemName(Body):
    """An item's namespace and key."""

    namespace: Labels
    key: Key


class NewItem(ItemName):
    """An item to put."""

    value: Note = Field(examples=[{"colour": "green"}])
    index: Literal[False] | list[str] | None = None
    ttl: Annotated[float, Field(gt=0, allow_inf_nan=False, description="Minutes.")] | None = None


class ItemSearch(Body):
    """Which items to search for."""

    namespace_prefix: Labels
    filter: Note | None = None
    limit: Limit = 10
    offset: Offset = 0
    query: Annotated[str, Field(max_length=10_000)] | None = None
    refresh_ttl: bool | None = None


class NamespaceSearch(Body):
    """Which namespaces to list."""

    prefix: Labels | None = None
    suffix: Labels | None = None
    max_depth: Annotated[int, Field(ge=0, le=100)] | None = None
    limit: Limit = 100
    offset: Offset = 0


def add_store_routes(router: APIRouter) -> None:
    """Add the routes."""
    add: Callable[..., Any] = router.add_api_route
    tags = {"tags": ["store"], "response_model": None}
    add("/store/items", put, methods=["PUT"], status_code=204, **tags)
    add("/store/items", get, methods=["GET"], **tags)
    add("/store/items", delete, methods=["DELETE"], status_code=204, **tags)
    add("/store/items/search", search, methods=["POST"], **tags)
    add("/store/namespaces", namespaces, methods=["POST"], **tags)


async def put(body: NewItem, desk: AtDesk) -> Response:
    """Put an item, replacing an earlier one with its key."""
    _require_writable(body.namespace, desk)
    options = {} if body.ttl is None else {"ttl": body.ttl}
    try:
        await desk.store.aput(
            _labels(body.namespace), body.key, body.value, index=body.index, **options
        )
    except NotImplementedError as error:
        raise InvalidInput("items of this store do not expire: put it without ttl") from error
    return Response(status_code=204)


async def get(
    desk: AtDesk,
    key: Annotated[str, Query(max_length=10_000)],
    namespace: Annotated[
        str, Query(description="Its labels, with dots between them.", max_length=10_000)
    ] = "",
    refresh_ttl: Annotated[bool | None, Query()] = None,
) -> Response:
    """An item; null if it is not found."""
    item = await desk.store.aget(
        _labels(namespace.split(".") if namespace else ()), key, refresh_ttl=refresh_ttl
    )
    return await wire.answer(None if item is None else _shape(item))


async def delete(body: ItemName, desk: AtDesk) -> Response:
    """Delete an item, if it is stored."""
    _require_writable(body.namespace, desk)
    await desk.store.adelete(_labels(body.namespace), body.key)
    return Response(status_code=204)


async def search(body: ItemSearch, desk: AtDesk) -> Response:
    """The items of a namespace and those below it that match."""
    items = await desk.store.asearch(
        tuple(body.namespace_prefix),
        query=body.query,
        filter=body.filter,
        limit=body.limit,
        offset=body.offset,
        refresh_ttl=body.refresh_ttl,
    )
    return await wire.answer({"items": [_shape(item) for item in items]})


async def namespaces(body: NamespaceSearch, desk: AtDesk) -> Response:
    """The namespaces that have items."""
    names = await desk.store.alist_namespaces(
        prefix=None if body.prefix is None else tuple(body.prefix),
        suffix=None if body.suffix is None else tuple(body.suffix),
        max_depth=body.max_depth,
        limit=body.limit,
        offset=body.offset,
    )
    return await wire.answer({"namespaces": names})


def _labels(labels: Sequence[str]) -> tuple[str, ...]:
    if any("." in label for label in labels):
        raise InvalidInput("a label of a namespace holds no dot: dots stand between labels")
    return tuple(labels)


def _require_writable(labels: Sequence[str], desk: Desk) -> None:
    """Require that an owner does not write under the server's own labels.

    Raises:
        HTTPException: It is one.
    """
    if desk.owner is not None and labels and labels[0] in SERVERS:
        raise HTTPException(
            403, f"items below {labels[0]!r} are the server's own: take another namespace"
        )


def _shape(item: Item) -> wire.Shape:
    score = {"score": item.score} if isinstance(item, SearchItem) else {}
    return {
        "namespace": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        **score,
    }
