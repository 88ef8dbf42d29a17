"""Two savers as one: every call goes to both, and what they give must be equal.

A graph that runs on it runs once, and ids, versions and moments are the same in both. So whatever
the graph does, it would do on either.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, partialmethod
from typing import Any

from comparison import Form, Names, assert_same
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver
from prune_reference import copy_thread, drop, everything, place_of
from savers import Calls


class Beside(BaseCheckpointSaver[Any]):
    """A saver and LangGraph's `InMemorySaver` beside it, which copies and forgets by a model.

    A `SqliteSaver` may stand beside them: it says in which order checkpoints are listed. It cannot
    copy or forget single checkpoints, and is left out from then on.
    """

    def __init__(self, subject: Any, sqlite: SqliteSaver | None = None) -> None:
        super().__init__(serde=subject.serde)
        self.sqlite = sqlite
        self.subject, self.reference = subject, InMemorySaver()
        self.failure: BaseException | None = None
        self.lock = threading.RLock()

    def check(self) -> None:
        """Raise what went wrong first, even where a graph has caught it."""
        if self.failure is not None:
            raise self.failure

    def _both(self, name: str, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            expected = attempt(partial(getattr(self.reference, name), *args, **kwargs))
            found = attempt(partial(getattr(self.subject, name), *args, **kwargs))
            if self.sqlite is not None and name in CHANGES:
                getattr(self.sqlite, name)(*args, **kwargs)
            return self._compared(expected, found, name)

    async def _aboth(self, name: str, *args: Any, **kwargs: Any) -> Any:
        expected = attempt(partial(getattr(self.reference, name), *args, **kwargs))
        try:
            found = await getattr(self.subject, f"a{name}")(*args, **kwargs)
        except Exception as error:
            found = error
        return self._compared(expected, found, f"a{name}")

    def _compared(self, expected: Any, found: Any, what: str) -> Any:
        """What the subject gave; or raise what both raise."""
        if isinstance(found, Exception) and type(found) is type(expected):
            raise found
        with self._kept():
            if isinstance(found, Exception):
                raise AssertionError(f"{what} raised {found!r}; the reference did not") from found
            same(expected, found, what)
        return found

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failure = self.failure or error
            raise

    def list(self, config: Any, **wanted: Any) -> Iterator[CheckpointTuple]:
        """The checkpoints of both, in the order of each namespace."""
        with self.lock, self._kept():
            found = list(self.subject.list(config, **wanted))
            self._same_lists(config, found, **wanted)
            if self.sqlite is not None:
                listed = map(place_of, self.sqlite.list(config, **wanted))
                assert [place_of(one) for one in found] == [*listed], f"list({config}, {wanted})"
        return iter(found)

    async def alist(self, config: Any, **wanted: Any) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        with self._kept():
            found = [one async for one in self.subject.alist(config, **wanted)]
            self._same_lists(config, found, **wanted)
        for one in found:
            yield one

    def _same_lists(self, config: Any, found: list[CheckpointTuple], **wanted: Any) -> None:
        limit = wanted.pop("limit", None)
        expected = list(self.reference.list(config, **wanted))
        if config is not None and config["configurable"].get("checkpoint_ns") is not None:
            return same(expected[:limit], found, f"list({config}, limit={limit}, {wanted})")
        every, some = by_namespace(expected), by_namespace(found)
        assert len(found) == len(expected[:limit]), f"list({config}, limit={limit}, {wanted})"
        for place, ones in some.items():
            same(every[place][: len(ones)], ones, f"list({config}, limit={limit}, {wanted})")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread in both."""
        self.sqlite = None
        self.subject.copy_thread(source_thread_id, target_thread_id)
        copy_thread(self.reference, source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        await self.subject.acopy_thread(source_thread_id, target_thread_id)
        copy_thread(self.reference, source_thread_id, target_thread_id)

    async def read_all(self, calls: Calls) -> None:
        """Read every checkpoint, listed and by its id, and what its channels are rebuilt from."""
        for one in await calls.collect(self, "list", None):
            channels = [*one.checkpoint["channel_versions"], "nothing"]
            await calls.call(self, "get_tuple", one.config)
            await calls.call(
                self, "get_delta_channel_history", config=one.config, channels=channels
            )
            newest = {**one.config["configurable"], "checkpoint_id": None}
            await calls.call(self, "get_tuple", {"configurable": newest})
        self.check()

    async def forget(self, work: Callable[[], Any], gone: Iterable[Any]) -> Any:
        """Do what forgets; it must take these checkpoints and nothing else."""
        before, gone = everything(self.subject), set(gone)
        self.sqlite, told = self.sqlite if not gone else None, await work()
        drop(self.reference, gone)
        assert set(everything(self.subject)) == set(before) - gone, "the checkpoints that stay"
        return told

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next version, by the subject."""
        versions = [
            one.get_next_version(current, channel) for one in (self.reference, self.subject)
        ]
        with self._kept():
            assert versions[0].split(".")[0] == versions[1].split(".")[0], "the next version"
        return versions[1]

    get_tuple, aget_tuple = (partialmethod(one, "get_tuple") for one in (_both, _aboth))
    put, aput = (partialmethod(one, "put") for one in (_both, _aboth))
    put_writes, aput_writes = (partialmethod(one, "put_writes") for one in (_both, _aboth))
    delete_thread, adelete_thread = (partialmethod(one, "delete_thread") for one in (_both, _aboth))
    get_delta_channel_history, aget_delta_channel_history = (
        partialmethod(one, "get_delta_channel_history") for one in (_both, _aboth)
    )


CHANGES = ("put", "put_writes", "delete_thread")


def attempt(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return error


def by_namespace(listed: Iterable[CheckpointTuple]) -> dict[tuple[str, str], list[CheckpointTuple]]:
    """Checkpoints by thread and namespace: savers differ in which of them come first."""
    groups: dict[tuple[str, str], list[CheckpointTuple]] = {}
    for one in listed:
        groups.setdefault(place_of(one)[:2], []).append(one)
    return groups


def same(expected: Any, found: Any, what: str) -> None:
    """Fail unless what two savers gave is equal."""
    assert_same(form(expected), form(found), what)


def form(given: Any) -> Form | None:
    """The exact form of what a saver gives."""
    names = Names(keep=True, late=True)
    if isinstance(given, list):
        return tuple(form(one) for one in given)
    if isinstance(given, CheckpointTuple):
        return names.checkpoint(without_snapshots(given))
    if isinstance(given, Mapping) and "configurable" in given:
        return names.config(given)
    if isinstance(given, Mapping):
        return names.unordered({name: dict(one) for name, one in given.items()}, late=True)
    return names.form(given)


def without_snapshots(found: CheckpointTuple) -> CheckpointTuple:
    """Leave out the snapshots of delta channels.

    InMemorySaver shows one in the checkpoints after it too, as long as the channel keeps its
    version; a saver that gives a checkpoint back as it was put does not. What is rebuilt from
    either is compared as delta history.
    """
    values = {
        key: value
        for key, value in found.checkpoint["channel_values"].items()
        if not isinstance(value, _DeltaSnapshot)
    }
    return found._replace(checkpoint={**found.checkpoint, "channel_values": values})
