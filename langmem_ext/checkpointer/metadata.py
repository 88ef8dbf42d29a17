"""Which of a config's values become metadata, which anyone reads who may list checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, CheckpointMetadata

from langmem_ext._internal.secret_names import is_secret_name
from langmem_ext.messages.proportion import load_json

EXPECTED_HEAD: Final = "expected_head"
"""Name in `configurable`: the id of the checkpoint that must be the thread's newest, or empty for a
thread that has none."""

_SCALARS: Final = (str, int, float)


def metadata_of(
    config: RunnableConfig, metadata: CheckpointMetadata, names: Collection[str] | None = None
) -> CheckpointMetadata:
    """A checkpoint's metadata with what the config adds to it.

    Like LangGraph's `get_checkpoint_metadata`, which copies every scalar of `configurable`, but for
    those with the name of a secret (`secret_names`).

    Args:
        config: The config of the put.
        metadata: What the graph says.
        names: The names in `configurable` that become metadata; None: all that look like no secret.
    """
    configurable = config.get("configurable") or {}
    found: dict[str, Any] = dict(metadata)
    # LangGraph has copied `configurable` into `metadata` too, by the time a checkpoint is put.
    for source in (config.get("metadata") or {}, configurable):
        for name in source:
            if (
                name in EXCLUDED_METADATA_KEYS
                or not isinstance(name, str)
                or name.startswith("__")
                or name in found
            ):
                continue
            value = source[name]
            if isinstance(value, _SCALARS) and (name not in configurable or _is_shown(name, names)):
                found[name] = value
    for name, value in found.items():
        if isinstance(value, str) and "\0" in value:
            found[name] = value.replace("\0", "")
    return cast(CheckpointMetadata, found)


_encoded: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


@lru_cache(maxsize=1024, typed=True)
def _label(items: tuple[tuple[str, Any], ...]) -> bytes:
    """Scalars as JSON text; few threads have many of these."""
    return _encoded(dict(items)).encode()


def label_of(labels: dict[str, Any]) -> bytes:
    """The scalars of a checkpoint's metadata as JSON text, in the order of their names."""
    # 1, 1.0 and True are equal, and inside a tuple the cache does not tell them apart.
    if _NUMBERS.isdisjoint(map(type, labels.values())):
        return _label(tuple(labels.items()))
    return _encoded(labels).encode()


_NUMBERS: Final = frozenset([int, float, bool])


SHORT: Final = 512
"""Bytes of a label up to which it is remembered as a dict."""


def labels_of(label: bytes) -> dict[str, Any]:
    """The scalars that `label_of` was given.

    Raises:
        ValueError: The text does not decode.
    """
    if len(label) > SHORT:
        return cast(dict[str, Any], load_json(label))
    return _loaded(label).copy()


_loaded: Final[Callable[[bytes], dict[str, Any]]] = lru_cache(maxsize=1024)(load_json)


def _is_shown(name: str, names: Collection[str] | None) -> bool:
    if names is not None:
        return name in names
    return name != EXPECTED_HEAD and not is_secret_name(name)
