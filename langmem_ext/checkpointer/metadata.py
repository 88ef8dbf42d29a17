"""Which of a config's values become metadata, visible to anyone who may list checkpoints."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, CheckpointMetadata

from langmem_ext._internal.json import require_whole
from langmem_ext._internal.secret_names import is_secret_name
from langmem_ext.messages.size_limits import load_json

_log = logging.getLogger(__name__)

EXPECTED_HEAD: Final = "expected_head"
"""Name in `configurable`: the id of the checkpoint that must be the thread's newest, or empty for a
thread that has none."""

INTEGER_BITS: Final = 64
"""The bits of a number in a column, including its sign."""

WRITTEN_BITS: Final = 2048
"""The maximum bits of a number that is written out: Python may be set to refuse more than 640
digits (`sys.set_int_max_str_digits`)."""

_SCALARS: Final = (str, int, float)
_LABELS: Final = frozenset([str, bool, int, float, type(None)])


def metadata_of(
    config: RunnableConfig, metadata: CheckpointMetadata, names: Collection[str] | None = None
) -> CheckpointMetadata:
    """A checkpoint's metadata with what the config adds to it.

    Like LangGraph's `get_checkpoint_metadata`, which copies every scalar of `configurable`, but
    without those whose names look secret (`secret_names`).

    Args:
        config: The config of the put.
        metadata: The graph's metadata.
        names: The names in `configurable` that become metadata; None for all that do not look
            secret.
    """
    configurable = config.get("configurable") or {}
    merged: dict[str, Any] = dict(metadata)
    # When a checkpoint is put, LangGraph has already copied `configurable` into `metadata`, too.
    for source in (config.get("metadata") or {}, configurable):
        for name in source:
            if (
                name in EXCLUDED_METADATA_KEYS
                or name in merged
                or not isinstance(name, str)
                or name.startswith("__")
            ):
                continue
            value = source[name]
            if isinstance(value, _SCALARS) and (name not in configurable or _is_shown(name, names)):
                merged[name] = value.replace("\0", "") if isinstance(value, str) else value
    return cast(CheckpointMetadata, merged)


def split_metadata(
    metadata: CheckpointMetadata,
) -> tuple[bytes, int | None, dict[str, Any]]:
    """Metadata in three parts: its scalars as JSON text, its step, and the rest.

    No text among the scalars has a NUL character, which not every database accepts.

    Raises:
        InvalidInput: A text or a name holds half of a character, which no reader of JSON takes.
    """
    labels: dict[str, Any] = {}
    details: dict[str, Any] = {}
    step: int | None = None
    for name, value in metadata.items():
        kind = type(value)
        if kind is str and type(name) is str:
            labels[name] = value
        elif name == "step" and kind is int and cast(int, value).bit_length() < INTEGER_BITS:
            step = cast(int, value)
        elif type(name) is str and kind in _LABELS and is_scalar(value):
            labels[name] = value
        else:
            details[name] = value
    if details not in _USUAL:
        require_whole(details, "a checkpoint's metadata")
    # 1, 1.0 and True are equal, and the cache does not distinguish them inside a tuple.
    if _NUMBERS.isdisjoint(map(type, labels.values())):
        return _label(tuple(labels.items())), step, details
    return _text_of(labels), step, details


def is_scalar(value: Any) -> bool:
    """Whether a metadata value can be stored in JSON text and compared there."""
    if isinstance(value, int):
        return value.bit_length() <= WRITTEN_BITS
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, float) and math.isfinite(value))
    )


_USUAL: Final[Sequence[dict[str, Any]]] = ({"parents": {}}, {})
"""What most checkpoints have beside scalars."""

_encoded: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


@lru_cache(maxsize=1024, typed=True)
def _label(items: tuple[tuple[str, Any], ...]) -> bytes:
    """`_text_of`, cached: few threads have many different labels."""
    return _text_of(dict(items))


def _text_of(labels: dict[str, Any]) -> bytes:
    """Scalars as JSON text, without NUL characters."""
    label = _encoded(labels).encode()
    if b"\\ud" in label:  # a character of two halves, or half of one
        require_whole(labels, "a checkpoint's metadata")
    if b"\\u0000" in label:
        for name, value in labels.items():
            labels[name] = value.replace("\0", "") if isinstance(value, str) else value
        label = _encoded(labels).encode()
    return label


_NUMBERS: Final = frozenset([int, float, bool])


SHORT: Final = 512
"""Labels of up to so many bytes are cached as dicts."""


def labels_of(label: bytes) -> dict[str, Any]:
    """The scalars that a label holds.

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
    if not is_secret_name(name):
        return name != EXPECTED_HEAD
    warn_left_out(name)
    return False


@lru_cache(maxsize=1024)
def warn_left_out(name: str) -> None:
    """Say once that a name is kept out of metadata."""
    _log.warning(
        "%r looks like the name of a secret: its value in 'configurable' does not become metadata,"
        " and no filter finds it. If it is none, name all that may be metadata:"
        " DeltaSaver(…, metadata_keys=[…])",
        name,
    )
