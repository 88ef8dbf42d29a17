"""What may be restored from a row: plain data, LangGraph's safe types, and imported data types.

LangGraph's own default restores whatever callable a row names, so that whoever can write a row can
run code; its strict mode turns an application's own state classes into plain data. The policy here
does neither. A *data type* is a pydantic model, a dataclass, a named tuple or an enum: something
that holds values and runs nothing. Functions, `Runnable`s and classes whose instances can be called
are never built, nor are those of a library that have, or whose fields' types have, validators or
other code of their own: many are clients, or read files. Nothing is ever imported for a row, and
nothing is unpickled. What is refused comes back as inert data, with one warning that says how to
allow it.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
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

_V1: Final = sys.modules.get("pydantic.v1.main")  # where something has imported it
_MODELS: Final[tuple[type, ...]] = (BaseModel, getattr(_V1, "BaseModel", BaseModel))

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
            kind = getattr(sys.modules.get(module), "__dict__", {}).get(name)  # imports nothing
            try:
                if _is_data_type(kind, module):
                    return kind
            except Exception as error:  # a library's metaclass, or its annotations, may raise any
                pass_on(error)
        _warn_refused(module, name, strict=self.strict)
        return None

    def array(self, dtype: str, shape: Any, order: Any, data: bytes) -> Any:
        """A numpy array; None for an array of objects, which is serialized as mere addresses."""
        numpy = importlib.import_module("numpy")
        kind = numpy.dtype(dtype)
        if kind.hasobject:
            return None
        return numpy.frombuffer(data, dtype=kind).reshape(shape, order=order)


def _is_data_type(kind: Any, module: str) -> bool:
    """Whether a thing is a class that only holds values.

    It must be defined in the module that names it: an alias is no way in.
    """
    if not isinstance(kind, type) or kind.__module__ != module:
        return False
    if issubclass(kind, Runnable) or any("__call__" in vars(cls) for cls in kind.__mro__):
        return False
    if any(cls.__name__ == "BaseSettings" for cls in kind.__mro__):
        return False  # building one reads the environment and files
    named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    members = issubclass(kind, enum.Enum) and kind.__members__  # without any, it makes enums
    if not (named_tuple or members or issubclass(kind, _MODELS) or dataclasses.is_dataclass(kind)):
        return False
    data: Any = kind  # a class; mypy finds `type[object]` unfit for a cache
    return module.startswith(_CONVERTING) or not _is_installed(module) or _runs_nothing(data)


_CONVERTING: Final = (
    "langchain_core.agents",
    "langchain_core.outputs.",
    "langchain_core.prompt_values",
)
"""Modules whose data types have code of their own, which only checks and converts values."""

_MAKERS: Final = frozenset({"builtins", "collections", "datetime", "time", "uuid"})
_HOOKS: Final = (
    *("__new__", "__init__", "__post_init__", "__setattr__", "__getattribute__", "__getattr__"),
    *("__del__", "_missing_"),
)
_KNOWN: Final = frozenset(
    {"builtins", "enum", "typing", "typing_extensions", "pydantic.main", "pydantic.root_model"}
    | {"pydantic._internal._dataclasses", "<string>"}  # the last is the file of generated code
)
_CHECKS: Final = """
any none bool int float decimal complex str bytes date time datetime timedelta uuid url enum literal
multi-host-url list tuple set frozenset dict typed-dict typed-dict-field model model-fields
model-field dataclass dataclass-args dataclass-field default nullable union tagged-union chain json
lax-or-strict json-or-python definitions definition-ref
"""  # the parts of a pydantic schema that run no function


@cache
def _is_installed(module: str) -> bool:
    """Whether a module is of a library, not of the application."""
    file = Path(getattr(sys.modules[module], "__file__", None) or "").absolute()
    return any(
        folder.name in ("site-packages", "dist-packages")
        or folder == Path(os.__file__).parent
        or file.relative_to(folder).parts[0] in _installed_in(folder)
        for folder in file.parents
    )


@cache
def _installed_in(folder: Path) -> frozenset[str]:
    """What `pip install --target` put into a folder, where the application may be, too."""
    records = [found.read_text("RECORD") or "" for found in distributions(path=[str(folder)])]
    return frozenset(re.split("[/,]", line)[0] for text in records for line in text.splitlines())


@cache
def _runs_nothing(kind: Any) -> bool:
    """Whether building a library's data type runs only checks of its fields' types."""
    if issubclass(kind, BaseModel):
        kind.model_rebuild(raise_errors=False)
    schema = getattr(kind, "__pydantic_core_schema__", {})  # a placeholder, where that failed
    return _is_bare(kind) and isinstance(schema, dict) and _only_checks(schema)


def _is_bare(kind: type) -> bool:
    """Whether a class has no code of its own that runs when one is built or thrown away."""
    fields = getattr(kind, "__dataclass_fields__", {})
    held = [inspect.getattr_static(kind, name, None) for name in fields]
    return (
        all(_is_known(kind, name) for name in _HOOKS)
        and _is_known(type(kind), "__call__")
        and not getattr(kind, "__pydantic_post_init__", None)
        and all(_is_plain_maker(field.default_factory) for field in fields.values())
        and all(inspect.ismemberdescriptor(x) or not inspect.isdatadescriptor(x) for x in held)
    )


def _is_known(kind: type, name: str) -> bool:
    """Whether a method is of a known base, or generated."""
    owner = next((cls for cls in kind.__mro__ if name in vars(cls)), object)
    method = getattr(owner, name, None)
    file = getattr(getattr(method, "__code__", None), "co_filename", None)
    module = getattr(method, "__globals__", {}).get("__name__")
    return not _KNOWN.isdisjoint((owner.__module__, module, file))


def _only_checks(schema: Any) -> bool:
    """Whether a part of a pydantic schema runs no function."""
    if isinstance(schema, list | tuple):
        return all(map(_only_checks, schema))
    if not isinstance(schema, dict):
        return not callable(schema) or _is_plain_maker(schema)
    part = schema.get("type")  # where it is no text, these are fields by their names
    if isinstance(part, str):
        if part not in _CHECKS.split() or not _is_bare(schema.get("cls", int)):
            return False
        schema = {key: schema[key] for key in schema.keys() - {"cls", "metadata"}}
    return all(map(_only_checks, schema.values()))


def _is_plain_maker(made_by: object) -> bool:
    return (
        made_by in (None, dataclasses.MISSING)
        or getattr(made_by, "__module__", None) in _MAKERS
        or (isinstance(made_by, type) and _is_data_type(made_by, made_by.__module__))
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
        if issubclass(kind, BaseModel):
            base: Any = BaseModel if _is_installed(kind.__module__) else kind
            return base.model_construct.__func__(kind, **payload)  # a library's own may do more
        if not issubclass(kind, _MODELS):
            raise
        return kind.construct(**payload)


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
