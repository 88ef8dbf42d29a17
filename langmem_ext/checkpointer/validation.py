"""What callers hand to a saver, checked before anything is changed.

LangGraph hands over what it says that it does. An application that makes a config of its own (of
JSON, of a row, of a UUID object) may not. And names that are texts need not be plain ones: a
graph's nodes may be called by the members of a `StrEnum`.
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
    """What a config names.

    Raises:
        InvalidInput: It is no config.
    """
    return _dict_of(
        _dict_of(config, "a config").get("configurable") or {}, "a config's configurable"
    )


def place_of(configurable: Mapping[str, Any]) -> tuple[str, str | None]:
    """The namespace and the checkpoint id that a config names; by default the root's and None.

    Raises:
        InvalidInput: One of them is no text, or holds a character that cannot be stored.
    """
    namespace, checkpoint_id = configurable.get("checkpoint_ns"), configurable.get("checkpoint_id")
    if namespace is not None:
        namespace = _storable(namespace, "configurable['checkpoint_ns']")
    if checkpoint_id is not None:
        checkpoint_id = _storable(checkpoint_id, "configurable['checkpoint_id']")
    return namespace or "", checkpoint_id or None


def is_plain(checkpoint: Any, metadata: Any, new_versions: Any) -> bool:
    """Whether a checkpoint is as LangGraph's own are: it need not be checked further."""
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
    """A checkpoint whose names and versions are what every reader takes.

    Raises:
        InvalidInput: The checkpoint or its metadata is not a dict, or the new versions are not
            named by channel.
    """
    given = _dict_of(checkpoint, "a checkpoint")
    require_storable(given.get("id"), "a checkpoint's id")
    _dict_of(metadata, "a checkpoint's metadata")
    _dict_of(new_versions, "new_versions")
    values = _dict_of(given.get("channel_values", {}), "a checkpoint's channel_values")
    versions = _dict_of(given.get("channel_versions", {}), "a checkpoint's channel_versions")
    seen = _dict_of(given.get("versions_seen", {}), "a checkpoint's versions_seen")
    inner = [
        _dict_of(one, "what a node has seen, in a checkpoint's versions_seen,")
        for one in seen.values()
    ]
    updated = given.get("updated_channels")
    if updated is not None and not isinstance(updated, list | tuple | set | frozenset):
        raise InvalidInput(
            "a checkpoint's updated_channels must be a list of channel names, or None, not"
            f" {_kind(updated)}"
        )
    texts = [
        given.get("id"),
        given.get("ts", ""),
        *values,
        *versions,
        *seen,
        *chain.from_iterable(inner),
        *(updated or ()),
    ]
    numbers = [*versions.values(), *chain.from_iterable(one.values() for one in inner)]
    plain = (
        type(given.get("v", 0)) is int
        and _TEXT.issuperset(map(type, texts))
        and _VERSION.issuperset(map(type, numbers))
    )
    if (
        plain
        and "".join(texts).isascii()
        and "".join(one for one in numbers if type(one) is str).isascii()
    ):
        return checkpoint
    return _in_plain_terms(given)


def _in_plain_terms(given: Mapping[str, Any]) -> dict[str, Any]:
    """A copy whose texts and versions are plain ones.

    Raises:
        InvalidInput: Something that names or counts is neither.
    """
    if "v" in given and (isinstance(given["v"], bool) or not isinstance(given["v"], int)):
        raise InvalidInput(f"a checkpoint's v must be a whole number, not {_kind(given['v'])}")
    changed: dict[str, Any] = {"id": _text_of(given.get("id"), "a checkpoint's id")}
    if "v" in given:
        changed["v"] = int(given["v"])
    if "ts" in given:
        changed["ts"] = _name_of(given["ts"], "a checkpoint's ts")
    if "channel_values" in given:
        changed["channel_values"] = {
            _name_of(name): value for name, value in given["channel_values"].items()
        }
    if "channel_versions" in given:
        changed["channel_versions"] = _versions_of(given["channel_versions"])
    if "versions_seen" in given:
        changed["versions_seen"] = {
            _name_of(node, "a node's name"): _versions_of(seen)
            for node, seen in given["versions_seen"].items()
        }
    if given.get("updated_channels") is not None:
        changed["updated_channels"] = [_name_of(name) for name in given["updated_channels"]]
    return {**given, **changed}


def checked_writes(writes: Any) -> list[tuple[str, Any]]:
    """A task's writes.

    Raises:
        InvalidInput: They are none, or a channel's name is no text.
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
        InvalidInput: The config names no checkpoint, or a task's id or path is no text or holds a
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
    """See that a list can be of so many.

    Raises:
        InvalidInput: It is no number of checkpoints.
    """
    if limit is not None and not isinstance(limit, int):
        raise InvalidInput(f"limit must be a number of checkpoints, or None for all, not {limit!r}")


def several(values: object, what: str, example: str = "[one]") -> list[Any]:
    """Several of what a caller names.

    Args:
        values: What the caller has passed.
        what: What they are, for the error.
        example: How one is passed, for the error.

    Raises:
        InvalidInput: It is one text, or nothing that can be gone through.
    """
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        given = "one text" if isinstance(values, str | bytes | bytearray) else _kind(values)
        raise InvalidInput(f"{what} must be a list, not {given}: pass {example}")
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
    """A text that names a row; what no text column takes is refused before anything is stored."""
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
