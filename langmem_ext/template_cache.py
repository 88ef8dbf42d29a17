"""What is remembered of the lists of messages lately used, by where they stand. What is remembered of a list is made in `templates`.

It is apart from that because an open database has one of these, and who only lists threads needs no message class.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from langmem_ext.messages.packed import Snapshot
    from langmem_ext.templates import Templates

Place: TypeAlias = tuple[str, str, str]
"""Thread id, namespace and channel: where a list stands."""

MAX_LISTS: Final = 256
"""How many lists are remembered."""

LONG: Final = 64
"""Messages of a list that an event loop builds itself, at most."""


class TemplateCache:
    """The lists lately used, by where they stand; for any thread.

    Args:
        max_bytes: What they may hold together, about.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.start_anew()

    def start_anew(self) -> None:
        """Remember nothing. In a forked child: another thread may have been changing what is remembered."""
        self._lists: OrderedDict[Place, Templates] = OrderedDict()
        self._long: dict[tuple[str, str], Place] = {}
        self._behind: dict[Place, list[Snapshot]] = {}
        self.size = 0
        self._lock = threading.Lock()

    def find(self, place: Place) -> Templates | None:
        """What is remembered of a list."""
        return self._lists.get(place)

    def remember(self, place: Place, templates: Templates) -> None:
        """Remember a list, and forget those that were not used for longest where there is no room for it."""
        with self._lock:
            before = self._lists.get(place)
            if before is not templates:
                self.size += templates.size - (before.size if before is not None else 0)
                self._lists[place] = templates
                if len(templates.packed) > LONG:
                    self._long[place[:2]] = place
            self._lists.move_to_end(place)
            while self._lists and (self.size > self._max_bytes or len(self._lists) > MAX_LISTS):
                self._drop(next(iter(self._lists)))

    def put_off(self, place: Place, packed: list[Snapshot]) -> None:
        """Note a list that is to be remembered later (`templates.catch_up`)."""
        with self._lock:
            self._behind[place] = packed

    @property
    def is_behind(self) -> bool:
        """Whether there is something to catch up with."""
        return bool(self._behind)

    def take_behind(self) -> dict[Place, list[Snapshot]]:
        """The lists that were put off; nobody else gets them."""
        with self._lock:
            behind, self._behind = self._behind, {}
        return behind

    def long_list(self, thread_id: str, namespace: str) -> tuple[Place, list[Snapshot]] | None:
        """Where a thread lately had a list of more than `LONG` messages, and these; None where it has had none."""
        place = self._long.get((thread_id, namespace))
        known = None if place is None else self._lists.get(place)
        return None if place is None or known is None else (place, known.packed)

    def forget(self, thread_id: str | None = None) -> None:
        """Forget one thread's lists, or all."""
        with self._lock:
            for place in [place for place in self._lists if thread_id is None or place[0] == thread_id]:
                self._drop(place)
            self._behind = {place: packed for place, packed in self._behind.items() if thread_id not in (None, place[0])}

    def _drop(self, place: Place) -> None:
        self.size -= self._lists.pop(place).size
        if self._long.get(place[:2]) == place:
            del self._long[place[:2]]
