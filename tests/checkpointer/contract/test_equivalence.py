"""DeltaSaver gives what InMemorySaver gives, in random programs.

Everything that can be read is compared after every step.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from exploring import carry_out, compare, compare_calls, explore
from programs import REFUSED, programs
from puts import call_lists
from savers import Backend, Mode

pytestmark = pytest.mark.contract


def test_random_programs_read_back_as_on_the_in_memory_saver(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    explore(programs, compare, backend, mode, folder)


def test_random_calls_read_back_exactly_as_on_the_in_memory_saver(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    explore(call_lists, compare_calls, backend, mode, folder)


def test_a_state_that_its_own_reducer_refuses_is_refused_as_on_the_in_memory_saver(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    carry_out(compare(REFUSED, backend, mode, folder), mode)
