"""`PromptVersions`: prompts that are stored in versions, of which one is active.

A version's id follows from its text: the same text added again is the same version, and two writers
never overwrite each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Any, Final

from langgraph.store.base import BaseStore, Item, Op, PutOp

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import require_storable
from langmem_ext.memory.calls import Call, Steps, arun, run
from langmem_ext.memory.items import ROOT, Namespace, OwnedStores, items_below, label_of
from langmem_ext.memory.prompts.texts import prompt_text
from langmem_ext.storage.rows.clock import moment_of, now_ms

_ACTIVE: Final = "active"
"""The key of what says which version is active; no version's id is this."""


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """A version of a prompt.

    Attributes:
        id: Its id.
        text: The prompt.
        added_at: When it was first added; with a time zone.
        active: Whether it is the one that is used.
    """

    id: str
    text: str
    added_at: datetime
    active: bool


class PromptVersions:
    """Prompts by name, each in versions.

    `MemoryGenerator(…, prompt=PromptVersions(store))` uses the active versions of
    `memory_generation` and `fact_extraction`, and its own prompts where there is none.

    Args:
        store: Where they are: any LangGraph store. Items that belong to an owner are ignored.
        namespace: The namespace of the store that they are below.

    Example:
        `PromptVersions(store).add("memory_generation", "Write down what the student is curious
        about.")`
    """

    def __init__(self, store: BaseStore, *, namespace: Namespace = ROOT) -> None:
        self.store = OwnedStores(store).of(None)
        self.root = tuple(namespace)

    def add(self, name: str, text: str, *, set_active: bool = True) -> PromptVersion:
        """Add a version of a prompt.

        Args:
            name: What the prompt is called.
            text: The prompt.
            set_active: Whether it is the one that is used from now on.

        Raises:
            InvalidInput: The name or the text is empty, or cannot be stored.
        """
        return run(self._add(name, text, set_active))

    async def aadd(self, name: str, text: str, *, set_active: bool = True) -> PromptVersion:
        """Async twin of `add`."""
        return await arun(self._add(name, text, set_active))

    def versions(self, name: str) -> list[PromptVersion]:
        """All versions of a prompt, the latest first; empty for a prompt that was never added."""
        return run(self._versions(name))

    async def aversions(self, name: str) -> list[PromptVersion]:
        """Async twin of `versions`."""
        return await arun(self._versions(name))

    def active(self, name: str) -> PromptVersion | None:
        """The version that is used; None where none is."""
        return run(self.reading(name))

    async def aactive(self, name: str) -> PromptVersion | None:
        """Async twin of `active`."""
        return await arun(self.reading(name))

    def activate(self, name: str, version_id: str | None) -> PromptVersion | None:
        """Use another version from now on, or none.

        Raises:
            InvalidInput: There is no such version.
        """
        return run(self._activate(name, version_id))

    async def aactivate(self, name: str, version_id: str | None) -> PromptVersion | None:
        """Async twin of `activate`."""
        return await arun(self._activate(name, version_id))

    # -- steps -------------------------------------------------------------------------------------

    def reading(self, name: str) -> Steps[PromptVersion | None]:
        """The steps of `active`."""
        place = self._place(name)
        active = _named(item) if (item := (yield Call(self.store, "get", place, _ACTIVE))) else None
        stored: Item | None = (
            None if active is None else (yield Call(self.store, "get", place, active))
        )
        return None if stored is None else _version(stored, active)

    def _add(self, name: str, text: str, set_active: bool) -> Steps[PromptVersion]:
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("a prompt is a text that is not empty")
        require_storable(text, "a prompt")
        place, version_id = (
            self._place(name),
            hashlib.blake2b(text.encode(), digest_size=6).hexdigest(),
        )
        if (yield Call(self.store, "get", place, version_id)) is None:
            value = {"text": text, "added_at": moment_of(now_ms()).isoformat()}
            yield Call(self.store, "put", place, version_id, value, index=False)
        if set_active:
            yield Call(self.store, "put", place, _ACTIVE, {"version": version_id}, index=False)
        versions = yield from self._versions(name)
        return next(version for version in versions if version.id == version_id)

    def _versions(self, name: str) -> Steps[list[PromptVersion]]:
        items = yield from items_below(self.store, self._place(name))
        active = next((_named(item) for item in items if item.key == _ACTIVE), None)
        versions = [_version(item, active) for item in items if item.key != _ACTIVE]
        return sorted(versions, key=lambda version: (version.added_at, version.id), reverse=True)

    def _activate(self, name: str, version_id: str | None) -> Steps[PromptVersion | None]:
        versions = yield from self._versions(name)
        if version_id is not None and version_id not in [version.id for version in versions]:
            raise InvalidInput(
                f"the prompt {name!r} has no version {version_id!r}: `versions` shows those that"
                " it has"
            )
        value = None if version_id is None else {"version": version_id}
        write: list[Op] = [PutOp(self._place(name), _ACTIVE, value, index=False)]
        yield Call(self.store, "batch", write)
        return (yield from self.reading(name))

    def _place(self, name: str) -> Namespace:
        if not isinstance(name, str) or not name:
            raise InvalidInput("a prompt's name is a text that is not empty")
        require_storable(name, "a prompt's name")
        return (*self.root, "prompts", label_of(name))


class Prompt:
    """A prompt of the package's: a text, a file that is read once, or the active stored version.

    Args:
        given: What a caller gives.
        name: What it is called among stored prompts.
        usual: What is used where no version is active.

    Raises:
        InvalidInput: It has no text, or the file cannot be read.
    """

    def __init__(self, source: str | PathLike[str] | PromptVersions, name: str, usual: str) -> None:
        self._name = name
        self._versions = source if isinstance(source, PromptVersions) else None
        self._text = usual if isinstance(source, PromptVersions) else prompt_text(source)

    def reading(self) -> Steps[str]:
        """The prompt text that applies now."""
        active = None if self._versions is None else (yield from self._versions.reading(self._name))
        return self._text if active is None else active.text


def _named(item: Item) -> str | None:
    version = item.value.get("version")
    return version if isinstance(version, str) else None


def _version(item: Item, active: str | None) -> PromptVersion:
    value: Mapping[str, Any] = item.value
    return PromptVersion(
        item.key, value["text"], datetime.fromisoformat(value["added_at"]), item.key == active
    )
