"""Promise: a paused garbage collector resumes as it was, whatever happens meanwhile."""

from __future__ import annotations

import gc
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from random import Random

import pytest
from patience import PATIENCE_S

from langmem_ext._internal.collector import without_collector


@pytest.fixture(autouse=True)
def running() -> Iterator[None]:
    """The collector runs before a test, and after it."""
    gc.enable()
    yield
    gc.enable()


def test_it_rests_meanwhile_and_goes_on() -> None:
    def inner() -> bool:
        assert not without_collector(gc.isenabled)
        return gc.isenabled()

    assert not without_collector(inner)
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        without_collector(divmod, 1, 0)
    assert gc.isenabled()


def test_who_has_stopped_it_finds_it_stopped() -> None:
    gc.disable()
    assert not without_collector(gc.isenabled)
    assert not gc.isenabled()


def test_it_goes_on_wherever_a_signals_handler_raises() -> None:
    random, raised = Random(0), 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while raised < 500:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + 3e-4 * random.random())
                while True:
                    without_collector(int)
            except KeyboardInterrupt:
                raised += 1
                assert gc.isenabled()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_it_runs_in_a_process_that_is_forked_meanwhile() -> None:
    resting, enough = threading.Event(), threading.Event()

    def rest() -> None:
        resting.set()
        enough.wait(PATIENCE_S)

    other = threading.Thread(target=without_collector, args=[rest])
    other.start()
    resting.wait(PATIENCE_S)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # that there are threads is what this is about
        child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not gc.isenabled()
    enough.set()
    other.join()
    assert (status, gc.isenabled()) == (0, True)
