"""The page of the server is so: its code and its commands, in their order, print what it says."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import until
from repository import ROOT

PAGE = (ROOT / "docs" / "operate" / "server.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    code = "".join(blocks("python"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    said = re.findall(r"^\s*print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert done.stdout.splitlines() == said
    assert said


@pytest.fixture
def coach(tmp_path: Path) -> Iterator[int]:
    """The page's application, served; its port."""
    [program] = blocks("py")
    (tmp_path / "coach.py").write_text(program)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "coach:app",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    server = subprocess.Popen(command, cwd=tmp_path)
    try:
        until(answers)
        yield port
    finally:
        server.terminate()
        server.wait()


@pytest.mark.process
def test_the_commands_of_the_page_answer_what_it_says(coach: int, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs curl: install it")
    [script] = blocks("bash")
    said = re.findall(r"^(?!#).*json .*  # (.+)$", script, re.MULTILINE)
    here = {**os.environ, "no_proxy": "*"}
    typed = [
        "bash",
        "-euo",
        "pipefail",
        "-c",
        script.replace("localhost:5000", f"127.0.0.1:{coach}"),
    ]
    done = subprocess.run(
        typed, cwd=tmp_path, capture_output=True, text=True, env=here, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == said
    assert len(said) == 5
