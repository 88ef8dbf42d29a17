"""A database whose process dies at an appointed step: how the tests kill what writes, prunes, imports or converses."""

from __future__ import annotations

import os
import signal

from langmem_ext.storage.effects import Effect, Rows
from langmem_ext.storage.sqlite import SqliteDriver


class DyingDriver(SqliteDriver):
    """Kills its process at one of its steps: before a statement runs, before a COMMIT, or after it."""

    dies_at: int | None = None
    steps = 0

    def _step(self) -> None:
        if self.steps == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps += 1

    def execute(self, effect: Effect) -> Rows:
        self._step()
        return super().execute(effect)

    def commit(self) -> None:
        self._step()
        super().commit()
        self._step()
