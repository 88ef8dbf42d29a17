"""The page of the server is so: its code and its commands, in their order, print what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from postgres.missing import missing
from repository import ROOT
from serving import listening

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


@pytest.mark.process
def test_the_commands_of_the_page_answer_what_it_says(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        missing("curl is not there: install it")
    [program], [script] = blocks("py"), blocks("bash")
    (tmp_path / "coach.py").write_text(program)
    said = re.findall(r"^(?!#).*json .*  # (.+)$", script, re.MULTILINE)

    def command(port: int) -> list[str]:
        uvicorn = [sys.executable, "-m", "uvicorn", "coach:app", "--log-level", "warning"]
        return [*uvicorn, "--port", str(port)]

    with listening(command, tmp_path) as (port, _):
        typed = script.replace("localhost:5000", f"127.0.0.1:{port}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", typed],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "no_proxy": "*"},
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == said
    assert len(said) == 5
