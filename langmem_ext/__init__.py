"""Conversation memory for LangGraph and LangChain: every message stored once, one log, many views.

Every public name is importable from here and loads when it is first used, so that `import
langmem_ext` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from langmem_ext.checkpointer.saver import DeltaSaver
    from langmem_ext.context.budget.budget import Budget
    from langmem_ext.context.budget.counters import TiktokenCounter, counter_for
    from langmem_ext.context.cut.planning import Governed
    from langmem_ext.context.govern import govern
    from langmem_ext.context.governor import ContextGovernor, ContextState
    from langmem_ext.context.middleware import ContextMiddleware
    from langmem_ext.context.policy import ContextPolicy
    from langmem_ext.context.tool_output.reader import output_reader
    from langmem_ext.errors import (
        CatalogError,
        ConnectionInUse,
        ContextOverflow,
        ConversationError,
        DamagedRow,
        HeadConflict,
        InvalidInput,
        InvalidThreadId,
        LangmemExtError,
        MalformedExport,
        MissingExtra,
        NotADatabase,
        SchemaTooNew,
        SearchUnavailable,
        SettingsError,
        StaleAnswer,
        StorageError,
        StorageUnavailable,
        SummaryFailed,
        ThreadBusy,
        ThreadDeleted,
        ThreadExists,
        ThreadExpired,
        ThreadNotFound,
        TurnLimitReached,
    )
    from langmem_ext.log.message_log import MessageLog
    from langmem_ext.log.restore import DataSerializer
    from langmem_ext.log.retention import Retention
    from langmem_ext.log.sweeper import AsyncSweeper, Sweeper
    from langmem_ext.maintenance.copy import CopyProgress, CopyReport, acopy_saver, copy_saver
    from langmem_ext.maintenance.doctor import aexamine, examine
    from langmem_ext.maintenance.import_sqlite import (
        ImportProgress,
        ImportReport,
        aimport_checkpoints,
        import_checkpoints,
    )
    from langmem_ext.maintenance.statistics import Statistics, astats, stats
    from langmem_ext.memory.facts.facts import Fact, Facts, FactSource
    from langmem_ext.memory.facts.tools import memory_tools
    from langmem_ext.memory.generator import Generation, GenerationReport, MemoryGenerator
    from langmem_ext.memory.memories import ConversationMemories, StoredMemory
    from langmem_ext.memory.prompts.middleware import MemoryPromptMiddleware
    from langmem_ext.memory.prompts.placeholders import (
        extract_memory_placeholders,
        inject_memory_placeholders,
        render_memory_snippet,
    )
    from langmem_ext.memory.prompts.versions import PromptVersion, PromptVersions
    from langmem_ext.memory.schema import ConversationMemoryData
    from langmem_ext.messages.annotations import FileReference
    from langmem_ext.messages.pairing import safe_boundaries
    from langmem_ext.messages.token_costs.tokens import ApproximateCounter, TokenCounter
    from langmem_ext.messages.turns import ConversationTurn
    from langmem_ext.settings.model import Settings
    from langmem_ext.settings.origin import Origin
    from langmem_ext.storage.inspect.examine import Report
    from langmem_ext.storage.inspect.findings import Finding
    from langmem_ext.store.store import DeltaStore
    from langmem_ext.telemetry import Event, JsonFormatter, LoggingSink, MemoryFigures, Sink
    from langmem_ext.telemetry.opentelemetry import OpenTelemetrySink
    from langmem_ext.threads.continuation.continuation import (
        ContextSummary,
        Continuation,
        ToolResult,
    )
    from langmem_ext.threads.continuation.files import FilePlan, TurnFile, read_file
    from langmem_ext.threads.continuation.tool import continued
    from langmem_ext.threads.continuation.usage import ThreadUsage, TurnUsage, Usage
    from langmem_ext.threads.history import ThreadChatMessageHistory
    from langmem_ext.threads.session.memory import (
        ConversationMemory,
        InMemoryConversationMemory,
        SessionHandle,
    )
    from langmem_ext.threads.session.message import Message
    from langmem_ext.threads.states.states import StatedThread, ThreadQuery, ThreadStates
    from langmem_ext.threads.threads import Threads
    from langmem_ext.threads.titles import TitleWriter
    from langmem_ext.types import (
        ExportedThreads,
        ImportedThreads,
        Pruned,
        SearchHit,
        ThreadInfo,
        ThreadStatistics,
    )
    from langmem_ext.waiting.catalog.catalog import IntentCatalog
    from langmem_ext.waiting.catalog.intent import Intent
    from langmem_ext.waiting.catalog.param import Extensions, Extraction, Param, ParamType
    from langmem_ext.waiting.converse import aconverse, converse
    from langmem_ext.waiting.extract import extract
    from langmem_ext.waiting.extract.reply import Reply
    from langmem_ext.waiting.graph.events import StreamSink
    from langmem_ext.waiting.graph.graph import build_waiting_graph
    from langmem_ext.waiting.middleware import AskUserMiddleware
    from langmem_ext.waiting.policy.user_questions import AskedQuestion
    from langmem_ext.waiting.sensitive import mark_sensitive
    from langmem_ext.waiting.state import SessionState
    from langmem_ext.waiting.turn import Turn
    from langmem_ext.waiting.understand.intents.classifier import (
        Classification,
        Classifier,
        ClassifyRequest,
        RuleClassifier,
    )
    from langmem_ext.waiting.understand.intents.meaning import EmbeddingClassifier
    from langmem_ext.waiting.understand.intents.model import ModelClassifier

_HOMES = {
    "ApproximateCounter": "messages.token_costs.tokens",
    "AskUserMiddleware": "waiting.middleware",
    "AskedQuestion": "waiting.policy.user_questions",
    "AsyncSweeper": "log.sweeper",
    "Budget": "context.budget.budget",
    "CatalogError": "errors",
    "Classification": "waiting.understand.intents.classifier",
    "Classifier": "waiting.understand.intents.classifier",
    "ClassifyRequest": "waiting.understand.intents.classifier",
    "ConnectionInUse": "errors",
    "ContextGovernor": "context.governor",
    "ContextMiddleware": "context.middleware",
    "ContextOverflow": "errors",
    "ContextPolicy": "context.policy",
    "ContextState": "context.governor",
    "ContextSummary": "threads.continuation.continuation",
    "Continuation": "threads.continuation.continuation",
    "ConversationError": "errors",
    "ConversationMemories": "memory.memories",
    "ConversationMemory": "threads.session.memory",
    "ConversationMemoryData": "memory.schema",
    "ConversationTurn": "messages.turns",
    "CopyProgress": "maintenance.copy",
    "CopyReport": "maintenance.copy",
    "DamagedRow": "errors",
    "DataSerializer": "log.restore",
    "DeltaSaver": "checkpointer.saver",
    "DeltaStore": "store.store",
    "EmbeddingClassifier": "waiting.understand.intents.meaning",
    "Event": "telemetry",
    "ExportedThreads": "types",
    "Extensions": "waiting.catalog.param",
    "Extraction": "waiting.catalog.param",
    "Fact": "memory.facts.facts",
    "FactSource": "memory.facts.facts",
    "Facts": "memory.facts.facts",
    "FilePlan": "threads.continuation.files",
    "FileReference": "messages.annotations",
    "Finding": "storage.inspect.findings",
    "Generation": "memory.generator",
    "GenerationReport": "memory.generator",
    "Governed": "context.cut.planning",
    "HeadConflict": "errors",
    "ImportProgress": "maintenance.import_sqlite",
    "ImportReport": "maintenance.import_sqlite",
    "ImportedThreads": "types",
    "InMemoryConversationMemory": "threads.session.memory",
    "Intent": "waiting.catalog.intent",
    "IntentCatalog": "waiting.catalog.catalog",
    "InvalidInput": "errors",
    "InvalidThreadId": "errors",
    "JsonFormatter": "telemetry",
    "LangmemExtError": "errors",
    "LoggingSink": "telemetry",
    "MalformedExport": "errors",
    "MemoryFigures": "telemetry",
    "MemoryGenerator": "memory.generator",
    "MemoryPromptMiddleware": "memory.prompts.middleware",
    "Message": "threads.session.message",
    "MessageLog": "log.message_log",
    "MissingExtra": "errors",
    "ModelClassifier": "waiting.understand.intents.model",
    "NotADatabase": "errors",
    "OpenTelemetrySink": "telemetry.opentelemetry",
    "Origin": "settings.origin",
    "Param": "waiting.catalog.param",
    "ParamType": "waiting.catalog.param",
    "PromptVersion": "memory.prompts.versions",
    "PromptVersions": "memory.prompts.versions",
    "Pruned": "types",
    "Reply": "waiting.extract.reply",
    "Report": "storage.inspect.examine",
    "Retention": "log.retention",
    "RuleClassifier": "waiting.understand.intents.classifier",
    "SchemaTooNew": "errors",
    "SearchHit": "types",
    "SearchUnavailable": "errors",
    "SessionHandle": "threads.session.memory",
    "SessionState": "waiting.state",
    "Settings": "settings.model",
    "SettingsError": "errors",
    "Sink": "telemetry",
    "StaleAnswer": "errors",
    "StatedThread": "threads.states.states",
    "Statistics": "maintenance.statistics",
    "StorageError": "errors",
    "StorageUnavailable": "errors",
    "StoredMemory": "memory.memories",
    "StreamSink": "waiting.graph.events",
    "SummaryFailed": "errors",
    "Sweeper": "log.sweeper",
    "ThreadBusy": "errors",
    "ThreadChatMessageHistory": "threads.history",
    "ThreadDeleted": "errors",
    "ThreadExists": "errors",
    "ThreadExpired": "errors",
    "ThreadInfo": "types",
    "ThreadNotFound": "errors",
    "ThreadQuery": "threads.states.states",
    "ThreadStates": "threads.states.states",
    "ThreadStatistics": "types",
    "ThreadUsage": "threads.continuation.usage",
    "Threads": "threads.threads",
    "TiktokenCounter": "context.budget.counters",
    "TitleWriter": "threads.titles",
    "TokenCounter": "messages.token_costs.tokens",
    "ToolResult": "threads.continuation.continuation",
    "Turn": "waiting.turn",
    "TurnFile": "threads.continuation.files",
    "TurnLimitReached": "errors",
    "TurnUsage": "threads.continuation.usage",
    "Usage": "threads.continuation.usage",
    "aconverse": "waiting.converse",
    "acopy_saver": "maintenance.copy",
    "aexamine": "maintenance.doctor",
    "aimport_checkpoints": "maintenance.import_sqlite",
    "astats": "maintenance.statistics",
    "build_waiting_graph": "waiting.graph.graph",
    "continued": "threads.continuation.tool",
    "converse": "waiting.converse",
    "copy_saver": "maintenance.copy",
    "counter_for": "context.budget.counters",
    "examine": "maintenance.doctor",
    "extract": "waiting.extract",
    "extract_memory_placeholders": "memory.prompts.placeholders",
    "govern": "context.govern",
    "import_checkpoints": "maintenance.import_sqlite",
    "inject_memory_placeholders": "memory.prompts.placeholders",
    "mark_sensitive": "waiting.sensitive",
    "memory_tools": "memory.facts.tools",
    "output_reader": "context.tool_output.reader",
    "read_file": "threads.continuation.files",
    "render_memory_snippet": "memory.prompts.placeholders",
    "safe_boundaries": "messages.pairing",
    "stats": "maintenance.statistics",
}

__all__ = [
    "ApproximateCounter",
    "AskUserMiddleware",
    "AskedQuestion",
    "AsyncSweeper",
    "Budget",
    "CatalogError",
    "Classification",
    "Classifier",
    "ClassifyRequest",
    "ConnectionInUse",
    "ContextGovernor",
    "ContextMiddleware",
    "ContextOverflow",
    "ContextPolicy",
    "ContextState",
    "ContextSummary",
    "Continuation",
    "ConversationError",
    "ConversationMemories",
    "ConversationMemory",
    "ConversationMemoryData",
    "ConversationTurn",
    "CopyProgress",
    "CopyReport",
    "DamagedRow",
    "DataSerializer",
    "DeltaSaver",
    "DeltaStore",
    "EmbeddingClassifier",
    "Event",
    "ExportedThreads",
    "Extensions",
    "Extraction",
    "Fact",
    "FactSource",
    "Facts",
    "FilePlan",
    "FileReference",
    "Finding",
    "Generation",
    "GenerationReport",
    "Governed",
    "HeadConflict",
    "ImportProgress",
    "ImportReport",
    "ImportedThreads",
    "InMemoryConversationMemory",
    "Intent",
    "IntentCatalog",
    "InvalidInput",
    "InvalidThreadId",
    "JsonFormatter",
    "LangmemExtError",
    "LoggingSink",
    "MalformedExport",
    "MemoryFigures",
    "MemoryGenerator",
    "MemoryPromptMiddleware",
    "Message",
    "MessageLog",
    "MissingExtra",
    "ModelClassifier",
    "NotADatabase",
    "OpenTelemetrySink",
    "Origin",
    "Param",
    "ParamType",
    "PromptVersion",
    "PromptVersions",
    "Pruned",
    "Reply",
    "Report",
    "Retention",
    "RuleClassifier",
    "SchemaTooNew",
    "SearchHit",
    "SearchUnavailable",
    "SessionHandle",
    "SessionState",
    "Settings",
    "SettingsError",
    "Sink",
    "StaleAnswer",
    "StatedThread",
    "Statistics",
    "StorageError",
    "StorageUnavailable",
    "StoredMemory",
    "StreamSink",
    "SummaryFailed",
    "Sweeper",
    "ThreadBusy",
    "ThreadChatMessageHistory",
    "ThreadDeleted",
    "ThreadExists",
    "ThreadExpired",
    "ThreadInfo",
    "ThreadNotFound",
    "ThreadQuery",
    "ThreadStates",
    "ThreadStatistics",
    "ThreadUsage",
    "Threads",
    "TiktokenCounter",
    "TitleWriter",
    "TokenCounter",
    "ToolResult",
    "Turn",
    "TurnFile",
    "TurnLimitReached",
    "TurnUsage",
    "Usage",
    "aconverse",
    "acopy_saver",
    "aexamine",
    "aimport_checkpoints",
    "astats",
    "build_waiting_graph",
    "continued",
    "converse",
    "copy_saver",
    "counter_for",
    "examine",
    "extract",
    "extract_memory_placeholders",
    "govern",
    "import_checkpoints",
    "inject_memory_placeholders",
    "mark_sensitive",
    "memory_tools",
    "output_reader",
    "read_file",
    "render_memory_snippet",
    "safe_boundaries",
    "stats",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'langmem_ext' has no attribute {name!r}")
    return getattr(import_module(f"langmem_ext.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def load_ipython_extension(ipython: object) -> None:
    """What `%load_ext langmem_ext` calls: the magics `%threads` and `%thread`."""
    import_module("langmem_ext.notebook").load(ipython)
