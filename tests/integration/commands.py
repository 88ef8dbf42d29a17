"""Commands of the shell, each in a process of its own, forked from one that has imported what commands need: it begins at once.

What a command does from its arguments and environment on is what it does in a shell; that it finds its imports by itself is tested
elsewhere (`test_config_command`, `test_cli`).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_server: subprocess.Popen[str] | None = None


def call(words: list[str], *, environment: Mapping[str, str], folder: Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Carry out a command in a pipe, as `subprocess.run` does.

    Args:
        words: What follows the program's name.
        environment: All of it.
        folder: The current one.
        given: Its input; None: none.
    """
    server = _begun()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as beside:
        place = Path(beside)
        (place / "in").write_text(given or "", newline="")
        command = {"words": words, "environment": dict(environment), "folder": str(folder), "beside": beside}
        server.stdin.write(json.dumps(command) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the process that forks has died: see its error output"
        out, err = ((place / name).read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(words, json.loads(answer), out, err)


def _begun() -> subprocess.Popen[str]:
    global _server
    if _server is None:
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        _server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        atexit.register(_end)
    return _server


def _end() -> None:
    if _server is not None and _server.stdin is not None and _server.stdout is not None:
        _server.stdin.close()
        _server.wait(20)
        _server.stdout.close()


# -- the process that forks ----------------------------------------------------------------------------------------------------------------


def _carry_out(command: dict[str, Any]) -> None:
    """Become the command; never comes back."""
    code = 1
    try:
        for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY | os.O_CREAT), ("err", os.O_WRONLY | os.O_CREAT))):
            os.dup2(os.open(os.path.join(command["beside"], name), flags, 0o600), number)
        # As a new process has them: nothing was read from them, or written to them.
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
        os.chdir(command["folder"])
        os.environ.clear()
        os.environ.update(command["environment"])
        sys.argv = ["langmem-ext", *command["words"]]
        import_module("langmem_ext.cli").main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _warm(folder: str) -> None:
    """Have everything imported that commands import when they run."""
    os.environ |= {"LANGMEM_EXT_DB": os.path.join(folder, "memory.db"), "XDG_CONFIG_HOME": folder}
    import_module("langmem_ext").DeltaSaver.open(os.environ["LANGMEM_EXT_DB"]).close()
    import_module("langmem_ext.storage.postgres.driver")
    for words in ("threads list --json", "search nothing", "stats", "doctor", "sweep --yes", "prune --keep-last 1 --yes", "export"):
        sys.argv = ["langmem-ext", *words.split()]
        with suppress(SystemExit), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            import_module("langmem_ext.cli").main()


def _serve() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _warm(folder)
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _carry_out(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
