"""What callers hand to a saver, checked before anything is changed: what names a checkpoint, the checkpoint, a task's writes, how many.

LangGraph hands over what it says that it does. An application that makes a config of its own (of JSON, of a row, of a UUID object) may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langmem_ext.errors import InvalidInput
from langmem_ext.log import require_storable


def configurable_of(config: object) -> Mapping[str, Any]:
    """What a config names; a namespace or checkpoint id that is None counts as left out.

    Raises:
        InvalidInput: It is no config, or its namespace or checkpoint id is no text.
    """
    configurable = _dict_of(_dict_of(config, "a config").get("configurable") or {}, "a config's configurable")
    namespace, checkpoint_id = configurable.get("checkpoint_ns"), configurable.get("checkpoint_id")
    if namespace is not None:
        _require_text(namespace, "configurable['checkpoint_ns']")
        require_storable(namespace, "checkpoint_ns")
    if checkpoint_id is not None:
        _require_text(checkpoint_id, "configurable['checkpoint_id']")
    return configurable


def require_checkpoint(checkpoint: object, metadata: object, new_versions: object) -> None:
    """See that something can be put.

    Raises:
        InvalidInput: It is no checkpoint, its metadata is none, or the new versions are not named by channel.
    """
    given = _dict_of(checkpoint, "a checkpoint")
    _require_text(given.get("id"), "a checkpoint's id")
    _require_text(given.get("ts", ""), "a checkpoint's ts")
    for channel in _dict_of(given.get("channel_values", {}), "a checkpoint's channel_values"):
        _require_text(channel, "a channel's name")
    for seen in _dict_of(given.get("versions_seen", {}), "a checkpoint's versions_seen").values():
        _dict_of(seen, "what a node has seen, in a checkpoint's versions_seen,")
    _dict_of(given.get("channel_versions", {}), "a checkpoint's channel_versions")
    _dict_of(metadata, "a checkpoint's metadata")
    _dict_of(new_versions, "new_versions")
    updated = given.get("updated_channels")
    if updated is not None and not isinstance(updated, list | tuple | set | frozenset):
        raise InvalidInput(f"a checkpoint's updated_channels is a list of channels' names, or None, not {_kind(updated)}")


def checked_writes(
    configurable: Mapping[str, Any], writes: Iterable[tuple[str, Any]], task_id: object, task_path: object
) -> Sequence[tuple[str, Any]]:
    """A task's writes.

    Raises:
        InvalidInput: They are none, the config names no checkpoint, or something that is to be a text is none.
    """
    if not isinstance(configurable.get("checkpoint_id"), str):
        raise InvalidInput("a task's writes belong to a checkpoint: pass its id as configurable['checkpoint_id']")
    _require_text(task_id, "a task's id")
    _require_text(task_path, "a task's path")
    pairs = list(writes) if isinstance(writes, Iterable) else [writes]
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidInput("a task's writes are pairs of a channel's name and a value: pass [('messages', message)]")
    return pairs


def require_limit(limit: object) -> None:
    """See that a list can be of so many.

    Raises:
        InvalidInput: It is no number of checkpoints.
    """
    if limit is not None and not isinstance(limit, int):
        raise InvalidInput(f"limit is how many checkpoints, a whole number, or None for all of them, not {limit!r}")


def _dict_of(value: Any, what: str) -> Mapping[Any, Any]:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidInput(f"{what} is a dict, not {_kind(value)}: pass it as LangGraph does")
    return value


def _require_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is a text, not {_kind(value)}")


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
