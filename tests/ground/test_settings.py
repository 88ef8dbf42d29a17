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
from langmem_ext.settings.descriptions import descriptions
from langmem_ext.settings.field import about, allowed, written
from langmem_ext.settings.origin import masked
from langmem_ext.settings.sources import PREFIX, project_file, user_file, variables

FIELDS = Settings.model_fields

DEFAULTS = {
    "enabled": True,
    "storage_path": "memory.db",
    "owner": "",
    "tz": "",
    "synchronous": "full",
    "compress": False,
    "on_damage": "raise",
    "max_turns": 50,
    "on_limit": "trim",
    "ttl_hours": 3,
    "sweep_interval_minutes": 15,
    "auto_prune_days": 0,
    "list_limit": 10,
    "title_length": 100,
    "model": "",
    "strategy": "summary",
    "max_history_tokens": 4096,
    "max_history_messages": 40,
    "keep_recent_messages": 20,
    "token_counter": "auto",
    "tool_output_trim_chars": 2000,
    "tool_output_offload_tokens": 0,
    "tool_output_protected_tokens": 50_000,
    "summarization_model": "",
    "summary_prompt_file": "",
    "verify_summary": True,
    "detect_loops": True,
    "strip_thoughts": True,
    "context_window_tokens": 0,
    "safety_margin_tokens": 512,
    "response_budget_tokens": 16_000,
    "history_budget_tokens": 50_000,
    "file_budget_tokens": 100_000,
    "max_recent_files": 0,
}
OFF = {
    name: special.off for name, field in FIELDS.items() if (special := about(field)).off is not None
}
UNITS = (
    "chars",
    "days",
    "files",
    "hours",
    "length",
    "limit",
    "messages",
    "minutes",
    "tokens",
    "turns",
)


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


# -- what there is ---------------------------------------------------------------------------------


def test_every_default_is_what_it_says(places: Places) -> None:
    settings = Settings()
    assert settings.model_dump() == DEFAULTS
    assert set(settings.origins) == set(DEFAULTS)
    assert {str(origin) for origin in settings.origins.values()} == {"default"}


def test_every_setting_says_what_it_governs_and_a_number_what_it_counts() -> None:
    assert [name for name in FIELDS if not descriptions().get(name)] == []
    numbers = [name for name, field in FIELDS.items() if field.annotation in (int, float)]
    assert [
        name for name in numbers if not about(FIELDS[name]).unit or name.split("_")[-1] not in UNITS
    ] == []


def test_without_its_source_the_package_has_no_descriptions_and_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_source(what: object) -> str:
        raise OSError("source not available")

    monkeypatch.setattr("inspect.getsource", no_source)
    assert descriptions.__wrapped__() == {}


def test_what_turns_a_setting_off_is_allowed(places: Places) -> None:
    assert (
        OFF["tool_output_trim_chars"] == OFF["max_history_messages"] == OFF["auto_prune_days"] == 0
    )
    settings = Settings(**OFF)
    assert {name: getattr(settings, name) for name in OFF} == OFF
    assert all("turns it off" in allowed(FIELDS[name]) for name in OFF)


def test_settings_do_not_change(places: Places) -> None:
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.ttl_hours = 5
    with pytest.raises(TypeError):
        settings.origins["ttl_hours"] = Origin("argument")  # type: ignore[index]  # that is what is tried


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
    ] == [
        f"{places.project}:4",
        "LANGMEM_EXT_TTL_HOURS",
        "argument",
        "default",
    ]


def valid(name: str) -> st.SearchStrategy[Any]:
    """Values that a setting takes, none of them empty: that would be not there."""
    field = FIELDS[name]
    kind, least = (
        field.annotation,
        next((mark.ge for mark in field.metadata if hasattr(mark, "ge")), 0),
    )
    most = next((mark.le for mark in field.metadata if hasattr(mark, "le")), 0)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(least, most)
    if kind is float:
        return st.floats(least, most)
    if name == "tz":
        return st.sampled_from(["Europe/Rome", "Asia/Kolkata", "UTC"])
    if kind is str:
        texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
        return texts.map(lambda text: f"/{text}") if about(field).is_path else texts
    return st.sampled_from(allowed(field).split(" or "))


@pytest.mark.parametrize("name", FIELDS)
@given(data=st.data())
def test_a_value_reads_the_same_from_every_place(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = data.draw(valid(name))
    with pytest.MonkeyPatch.context() as patch:
        places = Places(tmp_path_factory.mktemp("places"), patch)
        assert getattr(Settings(**{name: value}), name) == value
        text = repr(value) if isinstance(value, float) else written(value)
        places.variable(f"{PREFIX}{name.upper()}", text)
        assert getattr(Settings(), name) == value
        places.clear()
        places.project.write_text(yaml.safe_dump({name: value}))
        assert getattr(Settings(), name) == value
        places.clear()
        places.user.write_text(yaml.safe_dump({"memory": {name: value}}))
        assert getattr(Settings(), name) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("no", False), ("off", False), ("yes", True), ("On", True), ("1", True), ('"false"', False)],
)
def test_yes_and_no_are_understood(places: Places, text: str, value: bool) -> None:
    places.project.write_text(f"enabled: {text}\n")
    assert Settings().enabled is value


def test_what_is_empty_is_not_there(places: Places) -> None:
    places.variable("LANGMEM_EXT_OWNER", "")
    places.variable("LANGMEM_EXT_MAX_TURNS", "")
    places.project.write_text("owner: ann\nmax_turns:\nttl_hours: null\n")
    settings = Settings()
    assert (settings.owner, settings.max_turns, settings.ttl_hours) == ("ann", 50, 3)
    assert settings.origins["max_turns"].layer == "default"


@pytest.mark.parametrize("text", ["", "# Nothing yet.\n", "---\n", "memory:\n", "{}"])
def test_a_file_without_settings_sets_nothing(places: Places, text: str) -> None:
    places.project.write_text(text)
    assert Settings().model_dump() == DEFAULTS


def test_all_settings_of_a_file_may_stand_below_one_key(places: Places) -> None:
    places.project.write_text(
        "memory:\n  enabled: true\n  max_history_tokens: 4096\n  auto_prune_days: 30\n  strategy:"
        " simple\n  max_turn: 1\n"
    )
    [problem] = refused()
    assert problem.startswith(f"{places.project}:6: max_turn is not a setting")
    places.project.write_text("memory:\n  max_history_tokens: 100\n  auto_prune_days: 30\n")
    settings = Settings()
    assert (settings.max_history_tokens, settings.auto_prune_days) == (100, 30)
    assert settings.origins["auto_prune_days"].line == 3


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
    assert (project_file(), user_file()) == (below / "langmem.yaml", places.user)


# -- paths and passwords ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written_as", "meant"),
    [
        ("chats/memory.db", "{file}/chats/memory.db"),
        ("/srv/memory.db", "/srv/memory.db"),
        ("~/memory.db", "{home}/memory.db"),
        (":memory:", ":memory:"),
        ("sqlite:///memory.db", "sqlite:///memory.db"),
    ],
)
def test_a_path_in_a_file_counts_from_its_folder(
    places: Places, written_as: str, meant: str
) -> None:
    places.user.write_text(json.dumps({"storage_path": written_as}))
    assert Settings().storage_path == meant.format(file=places.user.parent, home=os.environ["HOME"])


def test_a_path_elsewhere_counts_from_where_the_program_is(places: Places) -> None:
    places.variable("LANGMEM_EXT_STORAGE_PATH", "here.db")
    places.variable("LANGMEM_EXT_SUMMARY_PROMPT_FILE", "~/prompt.txt")
    settings = Settings()
    assert (settings.storage_path, settings.summary_prompt_file) == (
        "here.db",
        f"{os.environ['HOME']}/prompt.txt",
    )
    assert Settings(storage_path="~/there.db").storage_path == f"{os.environ['HOME']}/there.db"


PASSWORDS = [
    ("postgresql://ann:SECRET@host/db", "postgresql://ann:***@host/db"),
    ("postgresql://ann:SEC@SECRET@host:5432/db?x=1", "postgresql://ann:***@host:5432/db?x=1"),
    ("postgresql://:SECRET@host", "postgresql://:***@host"),
    ("postgresql://ann:SEC/RET@host/db", "postgresql://ann:***@host/db"),
    ("postgresql://ann:SEC?RET@host/db?x=1", "postgresql://ann:***@host/db?x=1"),
    ("postgresql://ann:SEC#RET@host/db", "postgresql://ann:***@host/db"),
    (
        "postgresql://host/db?user=ann&password=SECRET&x=1",
        "postgresql://host/db?user=ann&password=***&x=1",
    ),
    (
        "postgresql://ann:SECRET@pooler/db?prepare=off&direct=postgresql%3A%2F%2Fann%3ASECRET%40host%3A5432%2Fdb&schema=chat",
        "postgresql://ann:***@pooler/db?prepare=off&direct=postgresql%3A%2F%2Fann%3A***%40host%3A5432%2Fdb&schema=chat",
    ),
    (
        "postgresql://h/d?direct=postgresql%3a//ann:SECRET@host/db",
        "postgresql://h/d?direct=postgresql%3a//ann:***@host/db",
    ),
    (
        "postgresql://h/d?direct=postgresql%3A%2F%2F%3ASECRET%40host",
        "postgresql://h/d?direct=postgresql%3A%2F%2F%3A***%40host",
    ),
    (
        "postgresql://h/d?direct=postgresql%3A%2F%2Fann%40host%3A5432%2Fd",
        "postgresql://h/d?direct=postgresql%3A%2F%2Fann%40host%3A5432%2Fd",
    ),
    ("host=h password='SEC RET' sslpassword=SECRET", "host=h password=*** sslpassword=***"),
    ("https://host/db?sig=SECRET&v=1", "https://host/db?sig=***&v=1"),
    ("sqlite:///memory.db?userPin=SECRET", "sqlite:///memory.db?userPin=***"),
    (
        "postgresql://h/d?direct=postgresql%3A%2F%2Fh%2Fd%3Fpassword%3DSECRET%26x%3D1&schema=chat",
        "postgresql://h/d?direct=postgresql%3A%2F%2Fh%2Fd%3Fpassword%3D***%26x%3D1&schema=chat",
    ),
    (
        "postgresql://h/d?password=SECRET%26SECRET&schema=chat",
        "postgresql://h/d?password=***&schema=chat",
    ),
    ("postgresql://h/d?schema=spinner&mapping=a", "postgresql://h/d?schema=spinner&mapping=a"),
    ("postgresql://ann@host/db", "postgresql://ann@host/db"),
    ("sqlite:///memory.db", "sqlite:///memory.db"),
    ("ann:dora@memory.db", "ann:dora@memory.db"),
]


@pytest.mark.parametrize(("url", "shown"), PASSWORDS)
def test_no_password_is_shown(places: Places, url: str, shown: str) -> None:
    assert masked(url) == shown
    settings = Settings(storage_path=url)
    assert settings.storage_path == url
    assert "SECRET" not in repr(settings) + str(settings)
    assert repr(shown) in repr(settings)


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("max_turn", "max_turns"),
        ("ttl", "ttl_hours"),
        ("storage-path", "storage_path"),
        ("MAX_HISTORY_TOKENS", "max_history_tokens"),
        ("prune_days", "auto_prune_days"),
        ("trim_chars", "tool_output_trim_chars"),
        ("summarisation_model", "summarization_model"),
    ],
)
def test_an_unknown_name_names_the_nearest(places: Places, name: str, near: str) -> None:
    places.project.write_text(f"enabled: true\n{name}: SECRET\n")
    assert refused() == (f"{places.project}:2: {name} is not a setting; did you mean {near}?",)
    places.clear()
    variable = PREFIX + name.upper().replace("-", "_")
    if variable.removeprefix(PREFIX).lower() not in FIELDS:
        places.variable(variable, "SECRET")
        assert refused() == (f"{variable} is not a setting; did you mean {PREFIX}{near.upper()}?",)
        places.clear()
    if name.isidentifier() and name.islower():
        assert refused(**{name: "SECRET"}) == (
            f"argument: {name} is not a setting; did you mean {near}?",
        )


def test_a_variable_in_small_letters_is_another_one(places: Places) -> None:
    places.variable("LANGMEM_EXT_max_turns", "7")
    assert refused() == (
        "LANGMEM_EXT_max_turns is not a setting; did you mean LANGMEM_EXT_MAX_TURNS?",
    )


def test_variables_that_are_no_settings_are_left_alone(places: Places) -> None:
    for name in ("LANGMEM_EXT_SHOP_DB", "LANGMEM_EXT_SOAK", "LANGMEM", "MY_LANGMEM_EXT_X"):
        places.variable(name, "1")
    assert Settings().model_dump() == DEFAULTS


BAD = [
    ("enabled", "perhaps", "true or false"),
    ("enabled", 2, "true or false"),
    ("synchronous", "off", "full or normal"),
    ("on_damage", True, "raise or skip"),
    ("strategy", "clever", "window or summary or hybrid or messages"),
    ("max_turns", -1, "a whole number of turns, 0 to 1,000,000,000; 0 turns it off"),
    ("max_turns", 1.5, "a whole number of turns"),
    ("max_turns", "many", "a whole number of turns"),
    ("max_turns", True, "a whole number of turns"),
    ("max_turns", 10**10, "a whole number of turns"),
    ("max_turns", [1], "a whole number of turns"),
    ("tool_output_protected_tokens", -1, "a whole number of tokens, 0 to 1,000,000,000"),
    ("ttl_hours", "nan", "a number of hours, 0 to 876,000; 0 turns it off"),
    ("ttl_hours", "inf", "a number of hours"),
    ("ttl_hours", "3 h", "a number of hours"),
    ("ttl_hours", False, "a number of hours"),
    ("auto_prune_days", "off", "0 turns it off"),
    ("sweep_interval_minutes", -0.5, "a number of minutes, 0 to 525,600"),
    ("storage_path", "", "use a path"),
    ("storage_path", {"path": "x"}, "use a path"),
    ("owner", 12, "text, in quotes if it looks like a number"),
]


@pytest.mark.parametrize(("name", "value", "right"), BAD)
def test_a_value_that_cannot_be_used_is_named_with_its_place_and_what_is_allowed(
    places: Places, name: str, value: object, right: str
) -> None:
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
        assert refused()[0].startswith(f"LANGMEM_EXT_{name.upper()}: {name} cannot be {value!r}; ")


def test_a_text_that_is_no_unicode_cannot_be_used(places: Places) -> None:
    places.variable("LANGMEM_EXT_OWNER", os.fsdecode(b"ann\xff"))
    assert refused() == (
        (
            r"LANGMEM_EXT_OWNER: owner cannot be 'ann\udcff'; text, in quotes if it looks like a"
            r" number"
        ),
    )


def test_a_path_that_is_no_unicode_can_be_used(places: Places) -> None:
    places.variable("LANGMEM_EXT_STORAGE_PATH", os.fsdecode(b"memory\xff.db"))
    assert os.fsencode(Settings().storage_path) == b"memory\xff.db"


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


def test_a_value_that_another_place_replaces_does_not_matter(places: Places) -> None:
    places.user.write_text("ttl_hours: soon\n")
    assert Settings(ttl_hours=1).ttl_hours == 1


def test_a_mistaken_password_is_not_repeated(places: Places) -> None:
    [problem] = refused(ttl_hours="postgresql://ann:SECRET@host/db")
    assert "SECRET" not in problem


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]\n"
    for last, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n- b\n", "line 1: write settings as `name: value`"),
        ("just text\n", "line 1: write settings as `name: value`"),
        ("memory: [1]\n", "line 1: write settings as `name: value`"),
        ("ttl_hours: 1\nttl_hours: 2\n", "line 2: ttl_hours: duplicate key (first in line 1)"),
        ("ttl_hours: [1\n", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        ("owner: !!python/object/apply:os.system 'touch pwned'\n", "line 1: owner: the tag"),
        (
            "owner: !!python/object/apply:os.system ['touch pwned']\n",
            "owner cannot be ['touch pwned']",
        ),
        (BOMB, "aliases multiply them"),
        (b"owner: \xff\n", "it is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_mapping_of_data_is_refused(
    places: Places, content: str | bytes, message: str
) -> None:
    places.project.write_bytes(content.encode() if isinstance(content, str) else content)
    before = sorted(places.project.parent.iterdir())
    problems = refused(ttl_hours=1)
    assert problems[0].startswith(f"{places.project}:")
    assert message in "\n".join(problems)
    assert sorted(places.project.parent.iterdir()) == before


words = st.sampled_from(
    [
        *FIELDS,
        "memory",
        "true",
        "12",
        "-1",
        "nan",
        "~",
        "null",
        "x",
        "&a",
        "*a",
        "!!int",
        "\x1b[2J",
        "\ud800",
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


def test_a_folder_of_that_name_is_no_file(places: Places) -> None:
    places.user.mkdir()
    assert "it cannot be read" in refused()[0]


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


# -- the extra -------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("missing", ["pydantic_settings", "platformdirs"])
def test_without_the_extra_the_rest_works_and_the_error_names_the_pip_command(missing: str) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
import langmem_ext
for name in langmem_ext.__all__:
    try:
        getattr(langmem_ext, name)
    except langmem_ext.MissingExtra as error:
        print(name, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Origin", "Settings"]
    assert all("pip install 'langmem-ext[settings]'" in line for line in done.stdout.splitlines())


def test_every_setting_has_one_variable_and_the_database_an_older_one_too() -> None:
    named = variables(FIELDS)
    assert {name: variable for variable, name in named.items()} == {
        name: f"{PREFIX}{name.upper()}" for name in FIELDS
    }
    assert len(named) == len(FIELDS) + 1
