"""Commands of the shell, carried out in this process: with arguments, environment, folder and pipes
of their own.

What a command does from its arguments on is what it does in a shell. That it finds its imports by
itself, ends on signals and writes to a terminal is tested with programs (`test_config_command`,
`test_cli`).
"""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any


def call(
    words: list[str], *, environment: Mapping[str, str], folder: Path, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Carry out a command in a pipe, as `subprocess.run` does.

    Args:
        words: What follows the program's name.
        environment: All of it.
        folder: The current one.
        given: Its input; None: none.
    """
    out, err = _pipe(), _pipe()
    with (
        _place(["langmem-ext", *words], environment, folder, given or ""),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = _carry_out()
    return subprocess.CompletedProcess(words, code, _text(out), _text(err))


def run(
    *words: object, given: str | None = None, code: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Carry out a command in the current folder, in an environment with more variables.

    It must end with this code, and shows no stack.
    """
    done = call(
        list(map(str, words)), environment=os.environ | variables, folder=Path.cwd(), given=given
    )
    assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def data(*words: object, **more: Any) -> list[Any]:
    """What a command prints for programs."""
    return [json.loads(line) for line in run(*words, "--json", **more).stdout.splitlines()]


def chat(
    *arguments: object, lines: list[str], code: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A chat in a pipe."""
    given = "".join(f"{line}\n" for line in lines)
    return run("chat", *arguments, given=given, code=code, **variables)


def _carry_out() -> int:
    """The command's exit code."""
    try:
        import_module("langmem_ext.cli").main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _pipe(content: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content.encode()), encoding="utf-8", write_through=True)


def _text(pipe: io.TextIOWrapper) -> str:
    buffer = pipe.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@contextmanager
def _place(
    words: list[str], environment: Mapping[str, str], folder: Path, given: str
) -> Iterator[None]:
    """Where a command is; everything is as it was afterwards."""
    kept = (
        sys.argv,
        sys.stdin,
        [*sys.path],
        dict(os.environ),
        Path.cwd(),
        [*logging.root.handlers],
        logging.root.level,
    )
    sys.argv, sys.stdin = words, _pipe(given)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    try:
        yield
    finally:
        sys.argv, sys.stdin, sys.path[:], before, current, logging.root.handlers[:], level = kept
        logging.root.setLevel(level)
        os.environ.clear()
        os.environ.update(before)
        os.chdir(current)
