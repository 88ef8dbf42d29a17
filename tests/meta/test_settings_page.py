"""The page about settings is up to date: its table, its code, and what it says about variables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from repository import ROOT

from docs.making.pages import with_settings
from langmem_ext import Settings
from langmem_ext.settings.sources import NOT_SETTINGS, PREFIX, variables

PAGE = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and nothing set but what the page says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in variables(Settings.model_fields):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_table_is_up_to_date() -> None:
    assert with_settings(PAGE) == PAGE, "make fix writes it anew"
    assert [name for name in Settings.model_fields if f"\n| `{name}` |" not in PAGE] == []


def test_the_file_on_the_page_is_one(here: Path) -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (here / "langmem.yaml").write_text(text, encoding="utf-8")
    settings = Settings()
    assert {
        name for name, origin in settings.origins.items() if origin.layer == "project file"
    } == set(yaml.safe_load(text))


def test_the_code_on_the_page_prints_what_it_says(here: Path) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    printed: list[str] = []
    exec(
        compile(code, "<settings.md>", "exec"),
        {"print": lambda *words: printed.append(" ".join(map(str, words)))},
    )
    assert printed == re.findall(r"^\s*print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert printed


def test_every_variable_of_this_project_is_a_setting_or_known_to_be_none() -> None:
    tests = [*ROOT.glob("tests/**/conftest.py"), ROOT / "tests" / "postgres" / "server.py"]
    places = [
        ROOT / "Makefile",
        *(ROOT / "graphs").glob("*.py"),
        *tests,
        *(ROOT / "benchmarks").rglob("*.py"),
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in places)
    used = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", text))
    assert {"LANGMEM_EXT_POSTGRES", "LANGMEM_EXT_SHOP_DB", "LANGMEM_EXT_SOAK"} <= used
    assert used <= variables(Settings.model_fields).keys() | NOT_SETTINGS
