"""Settings: precedence, origins, and the errors for invalid ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from repository import ROOT

from langmem_ext import LangmemExtError, Origin, Settings, SettingsError

PREFIX = "LANGMEM_EXT_"
FIELDS = Settings.model_fields

DATA: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("settings.yaml").read_text("utf-8"))
DEFAULTS: dict[str, Any] = DATA["defaults"]


class Places:
    """A computer with nothing set: an environment, a project's folder and a user's."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.project, self.user = (
            folder / "project" / "langmem.yaml",
            folder / "config" / "langmem-ext" / "langmem.yaml",
        )
        self._patch = patch
        for path in (self.project, self.user):
            path.parent.mkdir(parents=True)
        patch.chdir(self.project.parent)
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("HOME", str(folder))
        self.clear()

    def clear(self) -> None:
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            self._patch.delenv(name)
        for path in (self.project, self.user):
            path.unlink(missing_ok=True)

    def variable(self, name: str, text: str) -> None:
        self._patch.setenv(name, text)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def refused(**arguments: Any) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings(**arguments)
    return caught.value.problems


def test_every_default_is_what_it_says_and_settings_do_not_change(places: Places) -> None:
    settings = Settings()
    assert settings.model_dump() == DEFAULTS
    assert set(settings.origins) == set(DEFAULTS)
    assert {str(origin) for origin in settings.origins.values()} == {"default"}
    with pytest.raises(ValidationError, match="frozen"):
        settings.ttl_hours = 5
    with pytest.raises(TypeError):
        settings.origins["ttl_hours"] = Origin("argument")  # type: ignore[index]  # is tried


OFF = (
    *("max_turns", "ttl_hours", "sweep_interval_minutes", "auto_prune_days"),
    *("max_history_tokens", "max_history_messages", "tool_output_trim_chars"),
    *("tool_output_offload_tokens", "context_window_tokens", "safety_margin_tokens"),
    *("response_budget_tokens", "history_budget_tokens", "file_budget_tokens"),
)


def test_zero_turns_a_setting_off(places: Places) -> None:
    settings = Settings(**dict.fromkeys(OFF, 0))  # type: ignore[arg-type]
    assert all(getattr(settings, name) == 0 for name in OFF)


# -- which place counts ----------------------------------------------------------------------------

LAYERS = ("argument", "environment", "project file", "user file")
values = st.fixed_dictionaries({}, optional={layer: st.integers(0, 10**9) for layer in LAYERS})


@given(drawn=st.dictionaries(st.sampled_from(["max_turns", "list_limit", "title_length"]), values))
def test_the_first_place_that_has_a_value_counts(
    drawn: dict[str, dict[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        places = Places(tmp_path_factory.mktemp("places"), patch)
        for name, by_layer in drawn.items():
            if (text := by_layer.get("environment")) is not None:
                places.variable(f"{PREFIX}{name.upper()}", str(text))
        for layer, path in (("project file", places.project), ("user file", places.user)):
            path.write_text(
                "".join(
                    f"{name}: {by_layer[layer]}\n"
                    for name, by_layer in drawn.items()
                    if layer in by_layer
                )
            )
        settings = Settings(
            **{
                name: by_layer["argument"]
                for name, by_layer in drawn.items()
                if "argument" in by_layer
            }
        )
    for name in FIELDS:
        layer = next((layer for layer in LAYERS if layer in drawn.get(name, {})), "default")
        assert settings.origins[name].layer == layer
        assert getattr(settings, name) == (
            drawn[name][layer] if layer != "default" else DEFAULTS[name]
        )


def test_an_origin_names_the_variable_or_the_line(places: Places) -> None:
    places.variable("LANGMEM_EXT_TTL_HOURS", "0.5")
    places.project.write_text("# Ours\nttl_hours: 7\n\nmax_turns: 3\n")
    places.user.write_text("max_turns: 4\nlist_limit: 5\n")
    settings = Settings(strategy="hybrid")
    assert (settings.ttl_hours, settings.max_turns, settings.list_limit) == (0.5, 3, 5)
    assert settings.origins["ttl_hours"] == Origin("environment", "LANGMEM_EXT_TTL_HOURS")
    assert settings.origins["max_turns"] == Origin("project file", str(places.project), 4)
    assert settings.origins["list_limit"] == Origin("user file", str(places.user), 2)
    assert settings.origins["strategy"] == Origin("argument")
    assert [
        str(settings.origins[name]) for name in ("max_turns", "ttl_hours", "strategy", "model")
    ] == [f"{places.project}:4", "LANGMEM_EXT_TTL_HOURS", "argument", "default"]


def test_a_value_reads_the_same_from_every_place(places: Places) -> None:
    for name, values in DATA["valid"].items():
        for value in values:
            assert getattr(Settings(**{name: value}), name) == value
            text = json.dumps(value) if isinstance(value, bool) else str(value)
            places.variable(f"{PREFIX}{name.upper()}", text)
            assert getattr(Settings(), name) == value
            places.clear()
            places.project.write_text(yaml.safe_dump({name: value}))
            assert getattr(Settings(), name) == value
            places.clear()
            places.user.write_text(yaml.safe_dump({"memory": {name: value}}))
            assert getattr(Settings(), name) == value
            places.clear()
    for text, value in (("no", False), ("off", False), ("yes", True), ("On", True), ("1", True)):
        places.project.write_text(f"enabled: {text}\n")
        assert Settings().enabled is value


def test_a_file_without_settings_sets_nothing_and_what_is_empty_is_not_there(
    places: Places,
) -> None:
    for text in ("", "# Nothing yet.\n", "---\n", "memory:\n", "{}"):
        places.project.write_text(text)
        assert Settings().model_dump() == DEFAULTS
    for name in ("LANGMEM_EXT_SHOP_DB", "LANGMEM_EXT_SOAK", "LANGMEM", "MY_LANGMEM_EXT_X"):
        places.variable(name, "1")
    assert Settings().model_dump() == DEFAULTS, "variables that are no settings are left alone"
    places.variable("LANGMEM_EXT_OWNER", "")
    places.variable("LANGMEM_EXT_MAX_TURNS", "")
    places.project.write_text("owner: ann\nmax_turns:\nttl_hours: null\n")
    settings = Settings()
    assert (settings.owner, settings.max_turns, settings.ttl_hours) == ("ann", 50, 3)
    assert settings.origins["max_turns"].layer == "default"
    places.user.write_text("ttl_hours: soon\n")
    assert Settings(ttl_hours=1).ttl_hours == 1, "what another place replaces does not matter"


def test_the_older_variable_of_the_database_counts_for_less(places: Places) -> None:
    places.variable("LANGMEM_EXT_DB", "older.db")
    assert (Settings().storage_path, str(Settings().origins["storage_path"])) == (
        "older.db",
        "LANGMEM_EXT_DB",
    )
    places.variable("LANGMEM_EXT_STORAGE_PATH", "newer.db")
    assert Settings().storage_path == "newer.db"


def test_only_the_file_in_the_current_folder_is_the_projects(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.project.write_text("max_turns: 1\n")
    below = places.project.parent / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert Settings().max_turns == 50
    (below / "langmem.yaml").write_text("memory:\n  max_history_tokens: 100\n  max_turns: 2\n")
    assert str(Settings().origins["max_turns"]) == f"{below / 'langmem.yaml'}:3"


def test_a_path_in_a_file_counts_from_its_folder_else_from_where_the_program_is(
    places: Places,
) -> None:
    home = os.environ["HOME"]
    for written, meant in (
        ("chats/memory.db", f"{places.user.parent}/chats/memory.db"),
        ("/srv/memory.db", "/srv/memory.db"),
        ("~/memory.db", f"{home}/memory.db"),
        (":memory:", ":memory:"),
        ("sqlite:///memory.db", "sqlite:///memory.db"),
    ):
        places.user.write_text(json.dumps({"storage_path": written}))
        assert Settings().storage_path == meant
    places.variable("LANGMEM_EXT_STORAGE_PATH", "here.db")
    places.variable("LANGMEM_EXT_SUMMARY_PROMPT_FILE", "~/prompt.txt")
    settings = Settings()
    assert (settings.storage_path, settings.summary_prompt_file) == (
        "here.db",
        f"{home}/prompt.txt",
    )
    assert Settings(storage_path="~/there.db").storage_path == f"{home}/there.db"
    places.variable("LANGMEM_EXT_STORAGE_PATH", os.fsdecode(b"memory\xff.db"))
    assert os.fsencode(Settings().storage_path) == b"memory\xff.db", "it need be no Unicode"


# -- paths and passwords ---------------------------------------------------------------------------


def test_no_password_is_shown(places: Places) -> None:
    for url, shown in DATA["shown"]:
        settings = Settings(storage_path=url)
        assert settings.storage_path == url
        assert "SECRET" not in repr(settings) + str(settings), url
        assert repr(shown) in repr(settings)
    [problem] = refused(ttl_hours="postgresql://ann:SECRET@host/db")
    assert "SECRET" not in problem


# -- mistakes --------------------------------------------------------------------------------------


def test_an_unknown_name_names_the_nearest(places: Places) -> None:
    for name, near in DATA["near"].items():
        places.project.write_text(f"enabled: true\n{name}: SECRET\n")
        problem = f"{name} is not a setting; did you mean {near}?"
        assert refused() == (f"{places.project}:2: {problem}",)
        places.clear()
        variable = PREFIX + name.upper().replace("-", "_")
        if variable.removeprefix(PREFIX).lower() not in FIELDS:
            places.variable(variable, "SECRET")
            meant = f"{PREFIX}{near.upper()}"
            assert refused() == (f"{variable} is not a setting; did you mean {meant}?",)
            places.clear()
        if name.isidentifier() and name.islower():
            assert refused(**{name: "SECRET"}) == (f"argument: {problem}",)
    places.variable("LANGMEM_EXT_max_turns", "7")
    assert "did you mean LANGMEM_EXT_MAX_TURNS?" in refused()[0]


def test_a_value_that_cannot_be_used_is_named_with_its_place_and_what_is_allowed(
    places: Places,
) -> None:
    for name, value, right in DATA["wrong"]:
        [problem] = refused(**{name: value})
        assert problem.startswith(f"argument: {name} cannot be {value!r}; ")
        assert right in problem
        places.user.write_text(json.dumps({name: value}))
        [problem] = refused()
        in_file = str(value) if isinstance(value, float) else value
        assert problem.startswith(f"{places.user}:1: {name} cannot be {in_file!r}; ")
        places.clear()
        if isinstance(value, str) and value:
            places.variable(f"{PREFIX}{name.upper()}", value)
            assert refused()[0].startswith(f"LANGMEM_EXT_{name.upper()}: {name} cannot be")
            places.clear()
    places.variable("LANGMEM_EXT_OWNER", os.fsdecode(b"ann\xff"))
    assert refused()[0].startswith(r"LANGMEM_EXT_OWNER: owner cannot be 'ann\udcff'; text")


def test_all_mistakes_are_named_at_once_and_nothing_is_repeated_at_length(places: Places) -> None:
    places.variable("LANGMEM_EXT_MAX_TURNS", "x" * 10_000)
    places.variable("LANGMEM_EXT_MAX_TURNZ", "1")
    places.project.write_text("ttl_hours: soon\nlist_limt: 3\n")
    places.user.write_text("title: 3\n")
    with pytest.raises(LangmemExtError) as caught:
        Settings(strategy="none")
    message = str(caught.value)
    assert message.startswith("the settings have 6 mistakes:\n  ")
    assert all(
        word in message
        for word in ("MAX_TURNS", "MAX_TURNZ", "ttl_hours", "list_limt", "title", "strategy")
    )
    assert len(message) < 2_000


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]\n"
    for last, name in zip("abcdefgh", "bcdefghi", strict=True)
)


FILES: list[tuple[str | bytes, str]] = [
    ("- a\n- b\n", "line 1: write settings as `name: value`"),
    ("just text\n", "line 1: write settings as `name: value`"),
    ("memory: [1]\n", "line 1: write settings as `name: value`"),
    ("ttl_hours: 1\nttl_hours: 2\n", "line 2: ttl_hours: duplicate key (first in line 1)"),
    ("ttl_hours: [1\n", "not valid YAML"),
    ("a: 1\n---\nb: 2\n", "not valid YAML"),
    ("owner: !!python/object/apply:os.system 'touch pwned'\n", "line 1: owner: the tag"),
    ("owner: !!python/object/apply:os.system ['touch pwned']\n", "owner cannot be"),
    (BOMB, "aliases multiply them"),
    (b"owner: \xff\n", "it is not UTF-8 text"),
]


def test_a_file_that_is_no_mapping_of_data_is_refused(places: Places) -> None:
    for content, message in FILES:
        places.project.write_bytes(content.encode() if isinstance(content, str) else content)
        before = sorted(places.project.parent.iterdir())
        problems = refused(ttl_hours=1)
        assert problems[0].startswith(f"{places.project}:")
        assert message in "\n".join(problems), message
        assert sorted(places.project.parent.iterdir()) == before
    places.clear()
    places.user.mkdir()
    assert "it cannot be read" in refused()[0], "a folder of that name is no file"


words = st.sampled_from(
    [
        *(*FIELDS, "memory", "true", "12", "-1", "nan", "~", "null"),
        *("x", "&a", "*a", "!!int", "\x1b[2J", "\ud800"),
    ]
)
marks = st.sampled_from(
    [": ", "\n", "\n  ", "- ", ", ", "[", "]", "{", "}", '"', "#", "<<: ", "? ", "\t", ""]
)


@given(
    pieces=st.lists(st.tuples(words, marks), max_size=12),
    noise=st.binary(max_size=8),
    variable=words,
    text=words,
)
def test_whatever_stands_somewhere_it_is_settings_or_one_error(
    pieces: list[tuple[str, str]],
    noise: bytes,
    variable: str,
    text: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        places = Places(tmp_path_factory.mktemp("places"), patch)
        places.project.write_bytes(
            "".join(word + mark for word, mark in pieces).encode("utf-8", "surrogatepass") + noise
        )
        if "\ud800" not in variable + text:
            places.variable(f"{PREFIX}{variable.upper()}", text)
        said, values = "", DEFAULTS
        try:
            values = Settings().model_dump()
            assert Settings(**values).model_dump() == values
        except SettingsError as error:
            said = str(error)
    assert "\x1b" not in said
    assert values.keys() == DEFAULTS.keys()


@pytest.mark.process
def test_a_current_folder_that_has_gone_has_no_file(places: Places, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        f"import os; os.rmdir({str(gone)!r}); from langmem_ext import Settings;"
        " print(Settings().max_turns)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=gone, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "50\n"), done.stderr
