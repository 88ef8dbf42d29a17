"""A process with everything imported that forks processes to be killed, in milliseconds."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from repository import ROOT


class Nursery:
    """Runs a script that reads JSON commands and prints JSON answers, a line each.

    It prints the first line when it is ready.

    Args:
        script: The script.
    """

    def __init__(self, script: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        )
        assert self._read() == {"ready": True}

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that forks has died: see its error output"
        return json.loads(line)

    def run(self, **command: Any) -> Any:
        """Have a command carried out; the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()


# -- in the script ---------------------------------------------------------------------------------


def in_child(work: Callable[[], object], after_s: float | None = None) -> int:
    """Run `work` in a forked process, and kill it after a while where that is said; its exit code,
    negative for a signal.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def answer_commands(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer commands until the input ends; everything is imported by now."""
    gc.freeze()  # a collection in a fork would copy every page
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
