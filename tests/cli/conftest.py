"""What is tried here begins in a folder of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest
from current_folder import folder
from patience import PATIENCE_S

__all__ = ["folder"]

Terminal = Callable[..., pexpect.spawn]


@pytest.fixture(autouse=True)
def here(folder: Path) -> Path:
    """The current folder of a command."""
    return folder


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """Starts commands at terminals; none of them outlives the test."""
    started: list[pexpect.spawn] = []

    def start(*words: str, **variables: str) -> pexpect.spawn:
        # The size is said twice: variables of the surroundings would count for more than the
        # terminal's own size.
        size = {"COLUMNS": "120", "LINES": "40"}
        environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **size}
        child = pexpect.spawn(
            sys.executable,
            ["-m", "langmem_ext.cli", *words],
            env={**environment, **variables},
            encoding="utf-8",
            timeout=PATIENCE_S,
            dimensions=(40, 120),
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.close(force=True)
