"""Checks what callers pass to a saver, before anything is changed.

LangGraph passes the types that it declares. An application that makes its own config (from JSON, a
row, a UUID object) may not. And texts need not be plain ones: a graph's nodes may be named by the
members of a `StrEnum`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

from langmem_ext._internal.json import plain_text
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import require_storable

_TEXT: Final = frozenset([str])
_DICT: Final = {dict}
_VERSION: Final = frozenset([str, int, float])


def configurable_of(config: object) -> Mapping[str, Any]:
    """A config's `configurable`.

    Raises:
        InvalidInput: The config is invalid.
    """
    return _dict_of(
        _dict_of(config, "a config").get("configurable") or {}, "a config's configurable"
    )


def place_of(configurable: Mapping[str, Any]) -> tuple[str, str | None]:
    """The namespace and the checkpoint id that a config names; by default the root's and None.

    Raises:
        InvalidInput: One of them is not text, or has a character that cannot be stored.
    """
    namespace, checkpoint_id = configurable.get("checkpoint_ns"), configurable.get("checkpoint_id")
    if namespace is not None:
        namespace = _storable(namespace, "configurable['checkpoint_ns']")
    if checkpoint_id is not None:
        checkpoint_id = _storable(checkpoint_id, "configurable['checkpoint_id']")
    return namespace or "", checkpoint_id or None


def is_plain(checkpoint: Any, metadata: Any, new_versions: Any) -> bool:
    """Whether a checkpoint is like LangGraph's own, so that it need not be checked further."""
    try:
        seen, updated = checkpoint["versions_seen"], checkpoint["updated_channels"]
        held = [checkpoint["channel_values"], checkpoint["channel_versions"], *seen.values()]
        texts = [checkpoint["id"], checkpoint["ts"], *seen]
        if updated is not None:
            if type(updated) is not list:
                return False
            texts += updated
        texts += held[0]
        for versions in held[1:]:
            texts += versions
            texts += versions.values()
        return (
            _TEXT.issuperset(map(type, texts))
            and "".join(texts).isascii()
            and "\0" not in texts[0]
            and type(checkpoint["v"]) is int
            and _DICT.issuperset(map(type, (checkpoint, metadata, new_versions, seen, *held)))
        )
    except (TypeError, KeyError, AttributeError):
        return False


def checked_checkpoint(checkpoint: object, metadata: object, new_versions: object) -> Any:
    """A checkpoint with names and versions that every reader accepts.

    Raises:
        InvalidInput: The checkpoint or its metadata is not a dict, or the new versions are not
            named by channel.
    """
    fields = _dict_of(checkpoint, "a checkpoint")
    require_storable(fields.get("id"), "a checkpoint's id")
    _dict_of(metadata, "a checkpoint's metadata")
    _dict_of(new_versions, "new_versions")
    values = _dict_of(fields.get("channel_values", {}), "a checkpoint's channel_values")
    versions = _dict_of(fields.get("channel_versions", {}), "a checkpoint's channel_versions")
    seen = _dict_of(fields.get("versions_seen", {}), "a checkpoint's versions_seen")
    inner = [
        _dict_of(of_node, "what a node has seen, in a checkpoint's versions_seen,")
        for of_node in seen.values()
    ]
    updated = fields.get("updated_channels")
    if updated is not None and not isinstance(updated, list | tuple | set | frozenset):
        raise InvalidInput(
            "a checkpoint's updated_channels must be a list of channel names, or None, not"
            f" {_kind(updated)}"
        )
    texts = [
        fields.get("id"),
        fields.get("ts", ""),
        *values,
        *versions,
        *seen,
        *chain.from_iterable(inner),
        *(updated or ()),
    ]
    numbers = [*versions.values(), *chain.from_iterable(of_node.values() for of_node in inner)]
    plain = (
        type(fields.get("v", 0)) is int
        and _TEXT.issuperset(map(type, texts))
        and _VERSION.issuperset(map(type, numbers))
    )
    if (
        plain
        and "".join(texts).isascii()
        and "".join(number for number in numbers if type(number) is str).isascii()
    ):
        return checkpoint
    return _with_plain_names(fields)


def _with_plain_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with plain texts as names, and plain versions.

    Raises:
        InvalidInput: A name is not text, or a version is neither text nor a number.
    """
    if "v" in fields and (isinstance(fields["v"], bool) or not isinstance(fields["v"], int)):
        raise InvalidInput(f"a checkpoint's v must be a whole number, not {_kind(fields['v'])}")
    changed: dict[str, Any] = {"id": _text_of(fields.get("id"), "a checkpoint's id")}
    if "v" in fields:
        changed["v"] = int(fields["v"])
    if "ts" in fields:
        changed["ts"] = _name_of(fields["ts"], "a checkpoint's ts")
    if "channel_values" in fields:
        changed["channel_values"] = {
            _name_of(name): value for name, value in fields["channel_values"].items()
        }
    if "channel_versions" in fields:
        changed["channel_versions"] = _versions_of(fields["channel_versions"])
    if "versions_seen" in fields:
        changed["versions_seen"] = {
            _name_of(node, "a node's name"): _versions_of(seen)
            for node, seen in fields["versions_seen"].items()
        }
    if fields.get("updated_channels") is not None:
        changed["updated_channels"] = [_name_of(name) for name in fields["updated_channels"]]
    return {**fields, **changed}


def checked_writes(writes: Any) -> list[tuple[str, Any]]:
    """A task's writes.

    Raises:
        InvalidInput: They are not pairs, or a channel's name is not text.
    """
    pairs = list(writes) if isinstance(writes, Iterable) else [writes]
    for pair in pairs:
        if not (
            type(pair) is tuple and len(pair) == 2 and type(pair[0]) is str and pair[0].isascii()
        ):
            break
    else:
        return pairs
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidInput(
                "a task's writes must be pairs of a channel name and a value: pass [('messages',"
                " message)]"
            )
    return [(_name_of(channel), value) for channel, value in pairs]


def checked_task(
    configurable: Mapping[str, Any], task_id: object, task_path: object
) -> tuple[str, str, str, str]:
    """Where a task's writes belong: namespace and id of the checkpoint, the task's id and its path.

    Raises:
        InvalidInput: The config names no checkpoint, or the task's id or path is not text, or has a
            character that cannot be stored.
    """
    if configurable.get("checkpoint_id") is None:
        raise InvalidInput(
            "a task's writes belong to a checkpoint: pass its id as configurable['checkpoint_id']"
        )
    namespace, checkpoint_id = place_of(configurable)
    return (
        namespace,
        checkpoint_id or "",
        _storable(task_id, "a task's id"),
        _name_of(task_path, "a task's path"),
    )


def require_limit(limit: object) -> None:
    """Require that a limit is valid.

    Raises:
        InvalidInput: It is not a number of checkpoints.
    """
    if limit is not None and not isinstance(limit, int):
        raise InvalidInput(f"limit must be a number of checkpoints, or None for all, not {limit!r}")


def several(values: object, what: str, example: str = "[one]") -> list[Any]:
    """A caller's values as a list.

    Args:
        values: What the caller has passed.
        what: What they are, for the error.
        example: How to pass one, for the error.

    Raises:
        InvalidInput: It is one text, or not iterable.
    """
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        kind = "one text" if isinstance(values, str | bytes | bytearray) else _kind(values)
        raise InvalidInput(f"{what} must be a list, not {kind}: pass {example}")
    return list(values)


def _versions_of(versions: Mapping[Any, Any]) -> dict[str, Any]:
    return {_name_of(channel): _version_of(version) for channel, version in versions.items()}


def _version_of(version: Any) -> str | int | float:
    if isinstance(version, bool) or not isinstance(version, str | int | float):
        raise InvalidInput(
            f"a channel's version must be a string or a number, not {_kind(version)}: pass the"
            " result of get_next_version"
        )
    if isinstance(version, str):
        return _name_of(version, "a channel's version")
    return int(version) if isinstance(version, int) else float(version)


def _name_of(name: object, what: str = "a channel's name") -> str:
    text = _text_of(name, what)
    return text if text.isascii() else plain_text(text, what)


def _storable(value: object, what: str) -> str:
    """A text that names a row, which a text column must accept."""
    text = _text_of(value, what)
    require_storable(text, what)
    return text


def _text_of(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {_kind(value)}")
    return value if type(value) is str else str.__str__(value)


def _dict_of(value: Any, what: str) -> Mapping[Any, Any]:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be a dict, not {_kind(value)}: pass it as LangGraph does")
    return value


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
