"""Every error this package raises on purpose, in one tree.

```
LangmemExtError
├── InvalidInput (ValueError)        an argument that cannot be used; nothing was changed
│   ├── InvalidThreadId              empty, or neither a string, an int nor a UUID
│   ├── CatalogError                 every mistake of an intents file, each with its line
│   └── MalformedExport              a file that no export has written, or larger than is allowed; names the line
├── SettingsError                    every mistake of the settings, each with its place; nothing was changed
├── ThreadNotFound (LookupError)     no such thread, or it belongs to another owner
│   ├── ThreadExpired                not written for longer than it lives
│   └── ThreadDeleted                deleted while a run was under way; nothing of the run is stored
├── TurnLimitReached                 a thread has as many turns as it may have
├── ThreadBusy                       another caller is driving the thread right now
├── HeadConflict                     another writer has moved a thread's head
├── SearchUnavailable                there is nothing to search in, and why
├── ConversationError                a turn that cannot be delivered to this graph as it stands
├── ContextOverflow                  what a model must be sent is more than it takes; names the largest parts
├── SummaryFailed                    a model's answer that cannot stand for what it was to sum up
├── StorageError
│   ├── StorageUnavailable           the database cannot be opened, read or written here
│   ├── NotADatabase                 the file, or the schema, is something else
│   ├── SchemaTooNew                 written by a newer release of this package
│   ├── ConnectionInUse              a passed connection is inside a transaction
│   └── DamagedRow                   a stored row that does not decode; names thread and row
└── MissingExtra (ImportError)       an optional part is not installed; names the pip command
```

A message says what is wrong and what to do next. A caller who only wants "did this package refuse" catches `LangmemExtError`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class LangmemExtError(Exception):
    """Root of everything this package raises on purpose."""


class InvalidInput(LangmemExtError, ValueError):
    """An argument cannot be used. Nothing was changed."""


class InvalidThreadId(InvalidInput):
    """A thread id is empty, or neither a string, an int nor a UUID."""


class CatalogError(InvalidInput):
    """An intents file has mistakes.

    Attributes:
        problems: Every mistake found, in file order, each as `line N: what is wrong`.
    """

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = f"{len(self.problems)} mistake{'s' if len(self.problems) != 1 else ''}"
        super().__init__(f"{source} has {count}:\n" + "\n".join(f"  {problem}" for problem in self.problems))


class MalformedExport(InvalidInput):
    """What is to be imported is no export of threads, or is damaged, or larger than is allowed. Nothing was changed.

    Attributes:
        line: The line that is at fault.
        reason: What is wrong with it.
    """

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(f"line {line}: {reason}; nothing was imported")


class SettingsError(LangmemExtError):
    """Settings have mistakes. Nothing was changed.

    It is no `ValueError`: pydantic would take one for its own, and say nothing of the places.

    Attributes:
        problems: Every mistake found, each with the file and line, or the variable, that it stands in.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"the settings have a mistake: {self.problems[0]}")
        else:
            super().__init__(f"the settings have {len(self.problems)} mistakes:\n" + "\n".join(f"  {problem}" for problem in self.problems))


class ThreadNotFound(LangmemExtError, LookupError):
    """No such thread, or it belongs to another owner: the two are not told apart."""


class ThreadExpired(ThreadNotFound):
    """The thread was not written for as long as its kind lives: begin a new one.

    A thread that was not found is what it is from the next sweep on, so who handles that handles both.
    """


class ThreadDeleted(ThreadNotFound):
    """A thread was deleted while a run was under way. What the run has still written is not stored.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} was deleted while this run was under way, so nothing more of the run is stored:"
            " begin a new conversation (to copy checkpoints from elsewhere use copy_saver)"
        )


class TurnLimitReached(LangmemExtError):
    """The thread has as many turns as it may have: begin a new one, or allow more."""


class ThreadBusy(LangmemExtError):
    """Another caller is driving the thread right now; try again when its turn has ended."""


class HeadConflict(LangmemExtError):
    """Another writer has moved a thread's head: read its state again and decide anew.

    Args:
        thread_id: The thread.
        expected: Id of the checkpoint that was to be the newest; None for a thread without one.
        found: Id of the newest; None where there is none.
    """

    def __init__(self, thread_id: str, expected: str | None, found: str | None) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"thread {thread_id!r} has gone on: its newest checkpoint is {found or 'none'}, not {expected or 'none'} as expected;"
            " read its state again and decide anew"
        )


class SearchUnavailable(LangmemExtError):
    """Messages cannot be searched here; the message says why."""


class ConversationError(LangmemExtError):
    """A turn cannot be delivered to this graph as it stands."""


class ContextOverflow(LangmemExtError):
    """What a model must be sent costs more than it may: make the largest parts shorter, or the budget larger. Nothing was sent.

    Attributes:
        limit: What the messages might have cost, in tokens.
        tokens: What they would have.
        contributors: The three largest parts, each with its tokens.
    """

    def __init__(self, limit: int, tokens: int, contributors: Sequence[tuple[str, int]]) -> None:
        self.limit = limit
        self.tokens = tokens
        self.contributors = tuple(contributors)
        parts = "; ".join(f"{name}: {size:,}" for name, size in contributors)
        super().__init__(
            f"what the model must be sent costs {tokens:,} tokens where {f'{limit:,} are' if limit > 0 else 'none are'} left for messages:"
            f" system messages, the first task and the latest question are never left out. The largest parts are {parts}. Make them"
            " shorter, or raise the budget"
        )


class SummaryFailed(LangmemExtError):
    """A model's answer cannot stand for the messages that it was to sum up: keep them, or let another model do it. Nothing was changed.

    Args:
        purpose: What was asked of the model.
        reason: What is wrong with its answer, in words that quote nothing of it.
    """

    def __init__(self, purpose: str, reason: str) -> None:
        self.purpose = purpose
        self.reason = reason
        super().__init__(f"no summary was made: the model's answer to the {purpose!r} request {reason}; ask again or name another model")


class StorageError(LangmemExtError):
    """The database refused an operation; the operation left nothing behind."""


class StorageUnavailable(StorageError):
    """The database cannot be opened, read or written from here."""


class NotADatabase(StorageError):
    """The file, or the schema on PostgreSQL, is there and is not a database of this package."""


class SchemaTooNew(StorageError):
    """The database was written by a newer release: upgrade the package to open it."""


class ConnectionInUse(StorageError):
    """A passed connection is inside a transaction: commit or roll it back first."""


class DamagedRow(StorageError):
    """A stored row does not decode; the message names the row. Other threads stay readable."""


class MissingExtra(LangmemExtError, ImportError):
    """An optional part of the package is not installed.

    Args:
        feature: What the caller asked for.
        extra: The extra that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional part of this package: pip install 'langmem-ext[{extra}]'")


def told(error: object) -> str:
    """What an error may say in a message of ours: its words without what it quotes, which may be a stored value.

    Of an error that is neither ours nor a plain `ValueError` only the class is told: many show what they were given.

    >>> told(ValueError("invalid literal for int() with base 10: '4111'"))
    'invalid literal for int() with base 10: …'
    """
    if isinstance(error, LangmemExtError):
        return str(error)
    if type(error) is ValueError:
        return re.sub(r"(?s)(['\"]).*\1", "…", str(error))
    return type(error).__name__ if isinstance(error, BaseException) else str(error)


_QUOTING = frozenset({"builtins", "pydantic_core", "json", "ormsgpack"})
"""Whose errors may quote what was being read. An application's own serializer answers for what its errors say."""


def cause(error: Exception) -> Exception | None:
    """The error as the cause of another, unless a traceback would show with it what it quotes."""
    return None if type(error).__module__.split(".")[0] in _QUOTING and told(error) != str(error) else error
