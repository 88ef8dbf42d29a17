"""What may be restored from a row: plain data, LangGraph's safe types, and imported data types.

LangGraph's own default restores whatever callable a row names, so that whoever can write a row can
run code; its strict mode turns an application's own state classes into plain data. The policy here
does neither. A *data type* is a pydantic model, a dataclass, a named tuple or an enum: something
that holds values and runs nothing. Functions, `Runnable`s and classes whose instances can be called
are never built, nor are those of a library that have validators or other code of their own: many
are clients. Nothing is ever imported for a row, and nothing is unpickled. What is refused comes
back as inert data, with one warning that says how to allow it.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import logging
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from typing import Any, Final

from langchain_core.runnables import Runnable
from langgraph.checkpoint.serde._msgpack import (
    SAFE_MSGPACK_METHODS,
    SAFE_MSGPACK_TYPES,
    STRICT_MSGPACK_ENABLED,
)
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import BaseModel

from langmem_ext._internal.interruption import note, pass_on
from langmem_ext.messages.packed import unpack
from langmem_ext.messages.size_limits import LOOKED_AT, require_shallow

logger = logging.getLogger(__name__)

TypeName = tuple[str, ...]
ExtHook = Callable[[int, bytes], Any]

FEW: Final = 50
"""Extension types inside each other up to which a stack that is full was nearly full before."""

_SECRETS: Final = frozenset({("pydantic.types", "SecretStr"), ("pydantic.types", "SecretBytes")})

_V1: Any = getattr(
    sys.modules.get("pydantic.v1.main"), "BaseModel", None
)  # where something has imported it
_MODELS: Final[tuple[type, ...]] = (BaseModel,) if _V1 is None else (BaseModel, _V1)

_warned: set[tuple[str, str]] = set()


class RestorePolicy:
    """Decides which types are built from rows.

    Args:
        allow: Further types, as classes or `(module, name)`; they may be anything.
        strict: Only LangGraph's safe types and `allow`, no data types of the application. Default:
            as LangGraph has it, whether the variable `LANGGRAPH_STRICT_MSGPACK` was set.
    """

    def __init__(
        self, allow: Iterable[TypeName | type] = (), *, strict: bool = STRICT_MSGPACK_ENABLED
    ) -> None:
        self.strict = strict
        self.allow = frozenset(
            (item.__module__, item.__name__) if isinstance(item, type) else tuple(item)
            for item in allow
        )

    def find(self, module: str, name: str) -> Any:
        """What a row names, if it may be built; `None` if it is refused."""
        key = (module, name)
        if key in SAFE_MSGPACK_TYPES or key in self.allow or (key in _SECRETS and not self.strict):
            try:
                return getattr(importlib.import_module(module), name)
            except (ImportError, AttributeError):
                return None
        if not self.strict:
            kind = getattr(sys.modules.get(module), name, None)
            if _is_data_type(kind, module):
                return kind
        _warn_refused(module, name, strict=self.strict)
        return None

    def array(self, dtype: str, shape: Any, order: Any, data: bytes) -> Any:
        """A numpy array; None for an array of objects, which is serialized as mere addresses."""
        numpy = importlib.import_module("numpy")
        kind = numpy.dtype(dtype)
        return (
            None
            if kind.hasobject
            else numpy.frombuffer(data, dtype=kind).reshape(shape, order=order)
        )


def _is_data_type(kind: Any, module: str) -> bool:
    """Whether a thing is a class that only holds values.

    It must be defined in the module that names it: an alias is no way in.
    """
    if not isinstance(kind, type) or kind.__module__ != module:
        return False
    if issubclass(kind, Runnable) or "__call__" in {
        name for cls in kind.__mro__ for name in vars(cls)
    }:
        return False
    if any(cls.__name__ == "BaseSettings" for cls in kind.__mro__):
        return False  # building one reads the environment and files
    if _is_installed(module) and _runs_code(kind):
        return False  # as a client does, which reads its key
    named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return named_tuple or issubclass(kind, (*_MODELS, enum.Enum)) or dataclasses.is_dataclass(kind)


_INSTALLED: Final = tuple(
    os.path.join(path, "")
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_PLAIN: Final = ("langchain_core.", "langgraph.", "langmem_ext.")
"""Packages whose data types are known to run nothing else when they are built."""

_MAKERS: Final = frozenset({"builtins", "datetime", "time", "uuid"})


def _is_installed(module: str) -> bool:
    """Whether a module is of a library, not of the application."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return file.startswith(_INSTALLED) and not module.startswith(_PLAIN)


def _runs_code(kind: type) -> bool:
    """Whether building a data type runs more than the checks of its fields' types."""
    hooks = getattr(kind, "__pydantic_decorators__", None)
    kinds = ("validators", "field_validators", "root_validators", "model_validators")
    if hooks is not None and any(getattr(hooks, name) for name in kinds):
        return True
    marks = ("__pydantic_custom_init__", "__pydantic_post_init__", "__post_init__")
    if any(getattr(kind, name, None) for name in marks):
        return True
    if _V1 is not None and issubclass(kind, _V1):
        return True
    fields = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
    return any(not _is_plain_maker(field.default_factory) for field in fields.values())


def _is_plain_maker(made_by: object) -> bool:
    return (
        made_by in (None, dataclasses.MISSING)
        or isinstance(made_by, type)
        or getattr(made_by, "__module__", None) in _MAKERS
    )


def _warn_refused(module: str, name: str, *, strict: bool) -> None:
    if (module, name) not in _warned and len(_warned) < 1000:
        _warned.add((module, name))
        logger.warning(
            "%r is not restored from the database: it is %s."
            " Its fields are restored as plain data. To allow it, pass"
            " serde=DataSerializer(allow=[(%r, %r)]).",
            f"{module}.{name}",
            "neither on LangGraph's strict list of types nor in the graph's state"
            if strict
            else "not a data class of an imported module",
            module,
            name,
        )


class RestoreHook:
    """A msgpack hook that restores what LangGraph's serializer packs.

    An object, for functions that name each other would be garbage that only a collection finds.

    Args:
        policy: What may be built.
        further: Restores codes that are not LangGraph's.
    """

    __slots__ = ("_further", "_inner", "_level", "_policy")

    def __init__(
        self, policy: RestorePolicy, further: ExtHook | None = None, level: int = 0
    ) -> None:
        self._policy = policy
        self._further = further
        self._level = level
        self._inner: RestoreHook | None = None

    def __call__(self, code: int, data: bytes) -> Any:
        """The value that an extension's code and data represent."""
        try:
            if code not in _NESTING:
                if self._further is None:
                    raise ValueError(f"unknown extension code {code}")
                return self._further(code, data)
            if self._level == LOOKED_AT:
                require_shallow(data)
            if self._inner is None:
                self._inner = RestoreHook(self._policy, self._further, self._level + 1)
            held = unpack(
                data, self._inner.__call__
            )  # not the object: to call that takes one more of the stack's levels
            if code == EXT_DELTA_SNAPSHOT:
                return _DeltaSnapshot(held)
            if code == EXT_NUMPY_ARRAY:
                return self._policy.array(*held)
            module, name, payload, *method = held
            return _build(self._policy, code, module, name, payload, method)
        except RecursionError as error:
            if self._level <= FEW:
                note(error)  # the caller's stack is full, whatever is being read
                raise
            raise ValueError("it is nested too deeply") from error
        except BaseException as error:
            note(error)
            raise


def rebuild(policy: RestorePolicy, module: str, name: str, fields: dict[str, Any]) -> Any:
    """An instance of a pydantic class from its fields if the policy allows it, else the fields."""
    return _build(policy, EXT_PYDANTIC_V2, module, name, fields, [])


def _build(
    policy: RestorePolicy, code: int, module: str, name: str, payload: Any, method: list[str]
) -> Any:
    if code == EXT_METHOD_SINGLE_ARG and (module, name, *method) not in SAFE_MSGPACK_METHODS:
        _warn_refused(module, f"{name}.{''.join(method)}", strict=policy.strict)
        return payload
    kind = policy.find(module, name)
    if kind is None:
        return payload
    try:
        return _BUILDERS[code](kind, payload)
    except Exception as error:
        pass_on(error)
        # The class has changed since: its data is better than nothing, and better than an error
        # that closes the thread for ever.
        logger.warning(
            "%r could not be rebuilt (%s); its fields are restored as plain data",
            f"{module}.{name}",
            type(error).__name__,
        )
        return payload


def _build_model(kind: Any, payload: Any) -> Any:
    try:
        return kind(**payload)
    except Exception as error:
        pass_on(error)
        return (
            kind.model_construct(**payload)
            if hasattr(kind, "model_construct")
            else kind.construct(**payload)
        )


_BUILDERS: Final[dict[int, Callable[[Any, Any], Any]]] = {
    EXT_CONSTRUCTOR_SINGLE_ARG: lambda kind, payload: kind(payload),
    EXT_CONSTRUCTOR_POS_ARGS: lambda kind, payload: (
        _send(payload) if kind is Send else kind(*payload)
    ),
    EXT_CONSTRUCTOR_KW_ARGS: lambda kind, payload: kind(**payload),
    EXT_METHOD_SINGLE_ARG: lambda kind, payload: kind.fromisoformat(payload),
    EXT_PYDANTIC_V1: _build_model,
    EXT_PYDANTIC_V2: _build_model,
}


_NESTING: Final = frozenset({EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY, *_BUILDERS})


def _send(payload: Any) -> Send:
    node, arg, *timeout = payload
    return Send(node, arg, timeout=timeout[0]) if timeout else Send(node, arg)


class DataSerializer(JsonPlusSerializer):
    """LangGraph's serializer, restricted to data classes: the default of `DeltaSaver`.

    Args:
        allow: Additional types to restore, as classes or `(module, name)`.
        strict: Restore only LangGraph's safe types and `allow`; of a graph that is compiled with
            the saver, also the types of its state. Default: whether the environment variable
            `LANGGRAPH_STRICT_MSGPACK` was set when LangGraph was imported.
    """

    def __init__(
        self,
        *,
        allow: Iterable[TypeName | type] = (),
        strict: bool = STRICT_MSGPACK_ENABLED,
    ) -> None:
        self.policy = RestorePolicy(allow, strict=strict)
        super().__init__(__unpack_ext_hook__=RestoreHook(self.policy))

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[TypeName | type]) -> DataSerializer:
        """A serializer that also restores these types."""
        return DataSerializer(
            allow=[*self.policy.allow, *extra_allowlist], strict=self.policy.strict
        )
