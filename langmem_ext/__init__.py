"""Conversation memory for LangGraph and LangChain: every message stored once, one log, many views.

Every public name is importable from here and loads when it is first used, so that `import langmem_ext` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from langmem_ext.checkpoint import DeltaSaver
    from langmem_ext.errors import (
        CatalogError,
        ConnectionInUse,
        ConversationError,
        DamagedRow,
        InvalidInput,
        InvalidThreadId,
        LangmemExtError,
        MissingExtra,
        NotADatabase,
        SchemaTooNew,
        StorageError,
        StorageUnavailable,
        ThreadBusy,
        ThreadNotFound,
    )
    from langmem_ext.history import ThreadChatMessageHistory
    from langmem_ext.log import MessageLog
    from langmem_ext.serde import DataSerializer

_HOMES = {
    "CatalogError": "errors",
    "ConnectionInUse": "errors",
    "ConversationError": "errors",
    "DamagedRow": "errors",
    "DataSerializer": "serde",
    "DeltaSaver": "checkpoint",
    "InvalidInput": "errors",
    "InvalidThreadId": "errors",
    "LangmemExtError": "errors",
    "MessageLog": "log",
    "MissingExtra": "errors",
    "NotADatabase": "errors",
    "SchemaTooNew": "errors",
    "StorageError": "errors",
    "StorageUnavailable": "errors",
    "ThreadBusy": "errors",
    "ThreadChatMessageHistory": "history",
    "ThreadNotFound": "errors",
}

__all__ = [
    "CatalogError",
    "ConnectionInUse",
    "ConversationError",
    "DamagedRow",
    "DataSerializer",
    "DeltaSaver",
    "InvalidInput",
    "InvalidThreadId",
    "LangmemExtError",
    "MessageLog",
    "MissingExtra",
    "NotADatabase",
    "SchemaTooNew",
    "StorageError",
    "StorageUnavailable",
    "ThreadBusy",
    "ThreadChatMessageHistory",
    "ThreadNotFound",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'langmem_ext' has no attribute {name!r}")
    return getattr(import_module(f"langmem_ext.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
