"""`langmem-ext inspect` shows a database until it is stopped."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from patience import PATIENCE_S

from langmem_ext import DeltaSaver, ThreadChatMessageHistory


@pytest.mark.process
@pytest.mark.parametrize("words", [("memory.db",), ("--demo",)])
def test_a_database_is_shown_until_it_is_stopped(words: tuple[str, ...], tmp_path: Path) -> None:
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        ThreadChatMessageHistory("t", saver).add_user_message("where is my order?")
    command = [sys.executable, "-m", "langmem_ext.cli", "inspect", *words, "--no-browser"]
    shown = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert shown.stderr is not None
        address = next(
            found[0]
            for line in shown.stderr
            if (found := re.search(r"http://127\.0\.0\.1:\d+\S*(?=;)", line))
        )
        page = httpx.get(address, timeout=PATIENCE_S)
        assert page.status_code == 200
        assert "where is my order" in page.text
        assert ("Waits for" in page.text) == (words == ("--demo",))
        shown.send_signal(signal.SIGINT)
        assert shown.wait(PATIENCE_S) == 0
    finally:
        shown.kill()
        shown.communicate()
