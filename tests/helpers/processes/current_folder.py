"""A fixture for commands and programs: the folder that they are started in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own; nothing of the machine's settings leaks in."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LANGMEM_EXT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path
