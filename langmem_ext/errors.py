"""Every error this package raises on purpose, in one tree.

```
LangmemExtError
├── InvalidInput (ValueError)        an argument that cannot be used; nothing was changed
│   ├── InvalidThreadId              empty, or neither a string, an int nor a UUID
│   ├── ThreadExists                 a thread to create exists already
│   ├── CatalogError                 every mistake of an intents file, each with its line
│   └── MalformedExport              an invalid or too large export file; names the line
├── SettingsError                    all mistakes of the settings with their places; no change
├── ThreadNotFound (LookupError)     no such thread, or it belongs to another owner
│   ├── ThreadExpired                not written to for longer than its time to live
│   └── ThreadDeleted                deleted during a run; nothing of the run is stored
├── TurnLimitReached                 a thread has its maximum number of turns
├── ThreadBusy                       another caller is driving the thread right now
├── HeadConflict                     another writer has moved a thread's head
├── SearchUnavailable                messages cannot be searched; says why
├── ConversationError                a turn that cannot be delivered in the graph's present state
├── ContextOverflow                  a request exceeds its budget; names its largest parts
├── SummaryFailed                    a model's answer that cannot be used as a summary
├── StorageError
│   ├── StorageUnavailable           the database cannot be opened, read or written here
│   ├── NotADatabase                 the file, or the schema, is something else
│   ├── SchemaTooNew                 written by a newer release of this package
│   ├── ConnectionInUse              a passed connection is inside a transaction
│   └── DamagedRow                   a stored row that does not decode; names thread and row
└── MissingExtra (ImportError)       an optional part is not installed; names the pip command
```

A message says what is wrong and what to do next. A caller who only wants "did this package refuse"
catches `LangmemExtError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any


class LangmemExtError(Exception):
    """Root of all errors of this package. It can be pickled: a pool of processes passes it on."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[LangmemExtError], args: tuple[Any, ...], state: Mapping[str, Any]
) -> LangmemExtError:
    """An error as it was, whatever its constructor takes."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidInput(LangmemExtError, ValueError):
    """An argument is invalid. Nothing was changed."""


class InvalidThreadId(InvalidInput):
    """A thread id is empty, or neither a string, an int nor a UUID."""


class ThreadExists(InvalidInput):
    """A thread to create exists already. Nothing was changed.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"there is a thread {thread_id!r} already: use it as it is, or another id")


class CatalogError(InvalidInput):
    """A catalog has mistakes.

    Attributes:
        problems: Every mistake found, in file order, each as `line N: what is wrong`.
    """

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = f"{len(self.problems)} mistake{'s' if len(self.problems) != 1 else ''}"
        super().__init__(
            f"{source} has {count}:\n" + "\n".join(f"  {problem}" for problem in self.problems)
        )


class MalformedExport(InvalidInput):
    """A file is not an export of threads, is damaged, or exceeds a limit. Nothing was imported.

    Attributes:
        line: The number of the line.
        reason: What is wrong with it.
    """

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(f"line {line}: {reason}; nothing was imported")


class SettingsError(LangmemExtError):
    """Settings have mistakes. Nothing was changed.

    It is not a `ValueError`: pydantic would wrap that and lose the places.

    Attributes:
        problems: Every mistake, each with its file and line, or its variable.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"the settings have a mistake: {self.problems[0]}")
        else:
            super().__init__(
                f"the settings have {len(self.problems)} mistakes:\n"
                + "\n".join(f"  {problem}" for problem in self.problems)
            )


class ThreadNotFound(LangmemExtError, LookupError):
    """No such thread, or it belongs to another owner: the two are not distinguished."""


class ThreadExpired(ThreadNotFound):
    """The thread has expired: start a new one.

    From the next sweep on it raises `ThreadNotFound`, so handle that to handle both.
    """


class ThreadDeleted(ThreadNotFound):
    """A thread was deleted during a run. Later writes of the run are not stored.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} was deleted during this run, so the rest of the run is not"
            " stored: start a new conversation (to copy checkpoints from elsewhere, use"
            " copy_saver)"
        )


class TurnLimitReached(LangmemExtError):
    """The thread has reached its maximum number of turns: start a new one, or raise `max_turns`."""


class ThreadBusy(LangmemExtError):
    """Another caller is driving the thread right now; try again after its turn."""


class HeadConflict(LangmemExtError):
    """Another writer has moved a thread's head: read its state and try again.

    Args:
        thread_id: The thread.
        expected: Id of the expected newest checkpoint; None for a thread without one.
        found: Id of the actual newest checkpoint; None if there is none.
    """

    def __init__(self, thread_id: str, expected: str | None, found: str | None) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"thread {thread_id!r} has changed: its newest checkpoint is {found or 'none'}, not"
            f" {expected or 'none'} as expected; read its state and try again"
        )


class SearchUnavailable(LangmemExtError):
    """Messages cannot be searched; the message says why."""


class ConversationError(LangmemExtError):
    """A message cannot be delivered to this graph in its current state."""


class StaleAnswer(ConversationError):
    """A message answers a question that is no longer asked, or was not asked when it was sent.

    It was not delivered: show what waits now (an empty message does), then answer that.
    """


class ContextOverflow(LangmemExtError):
    """A request does not fit in its budget: shorten its largest parts, or raise the budget.

    Nothing was sent.

    Attributes:
        limit: Tokens available for messages.
        tokens: Tokens that they need.
        contributors: The three largest parts, each with its tokens.
    """

    def __init__(self, limit: int, tokens: int, contributors: Sequence[tuple[str, int]]) -> None:
        self.limit = limit
        self.tokens = tokens
        self.contributors = tuple(contributors)
        parts = "; ".join(f"{name}: {size:,}" for name, size in contributors)
        super().__init__(
            f"the request needs {tokens:,} tokens where"
            f" {f'{limit:,} are' if limit > 0 else 'none are'} left for messages: system messages,"
            " the first task and the latest question are never left out. The largest parts are"
            f" {parts}. Make them shorter, or raise the budget"
        )


class SummaryFailed(LangmemExtError):
    """A model's summary is unusable: keep the messages, or use another model. Nothing was changed.

    Args:
        purpose: The model's task.
        reason: What is wrong with its answer; never quotes it.
    """

    def __init__(self, purpose: str, reason: str) -> None:
        self.purpose = purpose
        self.reason = reason
        super().__init__(
            f"no summary was made: the model's answer to the {purpose!r} request {reason}; try"
            " again or use another model"
        )


class StorageError(LangmemExtError):
    """A database operation failed and was rolled back."""


class StorageUnavailable(StorageError):
    """The database cannot be opened, read or written from here."""


class NotADatabase(StorageError):
    """The file, or the schema on PostgreSQL, is not a langmem_ext database, or was changed."""


class SchemaTooNew(StorageError):
    """The database was written by a newer release: upgrade the package to open it."""


class ConnectionInUse(StorageError):
    """A passed connection has an open transaction: commit or roll it back first."""


class DamagedRow(StorageError):
    """A stored row is damaged; the message names the row. Other threads stay readable."""


class MissingExtra(LangmemExtError, ImportError):
    """An extra of the package is not installed.

    Args:
        feature: The feature that needs it.
        extra: The extra to install.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'langmem-ext[{extra}]'")


def safe_text(error: object) -> str:
    """The text of an error without what it quotes, which may be a stored value.

    An error that is neither ours nor a plain `ValueError` is named by its class alone: many quote
    their input.

    >>> safe_text(ValueError("invalid literal for int() with base 10: '4111'"))
    'invalid literal for int() with base 10: …'
    """
    if isinstance(error, LangmemExtError):
        return str(error)
    if type(error) is ValueError:
        return re.sub(r"(?s)(['\"]).*\1", "…", str(error))
    return type(error).__name__ if isinstance(error, BaseException) else str(error)


def logged(
    error: BaseException,
) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """An error as `exc_info` of a log line: where it was raised, and its text without a quotation.

    Its causes are left out: they quote, too.
    """
    name, text = type(error).__name__, safe_text(error)
    shown = Exception(name if text == name else f"{name}: {text}")
    return type(error), shown, error.__traceback__


_QUOTING = frozenset({"builtins", "pydantic_core", "json", "ormsgpack"})
"""Modules whose errors may quote what was being read. An application's own serializer must
see to its errors itself."""


def cause(error: Exception) -> Exception | None:
    """The error as the cause of another, unless a traceback would show with it what it quotes."""
    return (
        None
        if type(error).__module__.split(".")[0] in _QUOTING and safe_text(error) != str(error)
        else error
    )
