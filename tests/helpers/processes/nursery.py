"""A process with everything imported that forks processes to be killed, in milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
