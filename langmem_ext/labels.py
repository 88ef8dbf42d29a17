"""Which of a config's values become a checkpoint's metadata, where anyone who may list checkpoints reads them."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, CheckpointMetadata

from langmem_ext._internal.secret_names import is_secret_name

EXPECTED_HEAD: Final = "expected_head"
"""Name in `configurable`: the id of the checkpoint that must be the thread's newest, or empty for a thread that has none."""

_SCALARS: Final = (str, int, float)


def metadata_of(config: RunnableConfig, metadata: CheckpointMetadata, names: Collection[str] | None = None) -> CheckpointMetadata:
    """A checkpoint's metadata with what the config adds to it.

    Like LangGraph's `get_checkpoint_metadata`, which copies every scalar of `configurable`, but for those with the
    name of a secret (`secret_names`).

    Args:
        config: The config of the put.
        metadata: What the graph says.
        names: The names in `configurable` that become metadata; None: all that look like no secret.
    """
    configurable = config.get("configurable") or {}
    found: dict[str, Any] = dict(metadata)
    # LangGraph has copied `configurable` into `metadata` too, by the time a checkpoint is put.
    for source in (config.get("metadata") or {}, configurable):
        for name, value in source.items():
            if not isinstance(name, str) or name in found or name in EXCLUDED_METADATA_KEYS or name.startswith("__"):
                continue
            if not isinstance(value, _SCALARS):
                continue
            if name not in configurable or _is_shown(name, names):
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


def _is_shown(name: str, names: Collection[str] | None) -> bool:
    if names is not None:
        return name in names
    return name != EXPECTED_HEAD and not is_secret_name(name)
