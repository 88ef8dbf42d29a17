"""`Settings`: every setting, its default, its unit, and what turns it off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from langmem_ext.errors import SettingsError
from langmem_ext.settings.field import About, Count, Days, Hours, Minutes, Path, Text, Zone
from langmem_ext.settings.mistakes import mistakes
from langmem_ext.settings.origin import ARGUMENT, DEFAULT, Found, Origin, masked
from langmem_ext.settings.sources import EnvironmentSource, FileSource, project_file, user_file

_OTHER_NAMES: Final = {"simple": "window", "summarization": "summary"}


def _strategy(value: object) -> object:
    """Two strategies have other names, too, under which they are known elsewhere."""
    return _OTHER_NAMES.get(value, value) if isinstance(value, str) else value


class Settings(BaseSettings):
    """What an application may set without a line of code, read from the environment and from files.

    `Settings(ttl_hours=12)` takes each value from the first place that has it: an argument, the
    environment (`LANGMEM_EXT_TTL_HOURS`), `langmem.yaml` in the current folder, the user's file
    (`~/.config/langmem-ext/langmem.yaml`, or where the system keeps such files), the default. A
    variable that is empty and a key without a value count as not there. Making one reads two small
    files: once, at the start, is the time for it.

    Raises:
        SettingsError: A file cannot be read, a key or variable is not a setting, or a value is
            invalid: every mistake with its place.

    Example:
        `saver = DeltaSaver.open(Settings().storage_path)`
    """

    model_config = SettingsConfigDict(extra="forbid", frozen=True)

    # -- what is stored, and where -----------------------------------------------------------------

    enabled: bool = True
    """Whether conversations are stored. If false, a chat without `--db` keeps its conversation in
    memory until it ends."""
    storage_path: Annotated[
        Path,
        StringConstraints(min_length=1),
        About(
            is_path=True,
            variable="LANGMEM_EXT_DB",
            takes="use a path, ':memory:' or a URL like 'postgresql://user@host/name'",
        ),
    ] = "memory.db"
    """The database used by commands without `--db`: a path, `:memory:` or a URL like
    `postgresql://user@host/name`. `~` is the home directory."""
    owner: Text = ""
    """Show only the threads of this owner, and create new ones for it. If empty, all threads are
    shown, and new ones have no owner."""
    tz: Annotated[Zone, About(takes="use a name like Europe/Rome")] = ""
    """The user's time zone, like `Europe/Rome`, for dates like "tomorrow". If empty, the time zone
    of this machine."""
    synchronous: Literal["full", "normal"] = "full"
    """What survives a power loss: `full`, everything that was acknowledged; `normal`, a consistent
    database that may lack the last commits."""
    compress: bool = False
    """Compress new rows where that saves at least a tenth. Needs the extra `zstd`."""
    on_damage: Literal["raise", "skip"] = "raise"
    """What to do when a damaged conversation is continued: `raise` an error that names the row, or
    `skip` it and start a new one."""

    # -- threads -----------------------------------------------------------------------------------

    max_turns: Annotated[Count, About("turns", off=0)] = 50
    """The maximum number of turns of a thread; see `on_limit`."""
    on_limit: Literal["trim", "error"] = "trim"
    """What happens at `max_turns`: `trim` hides the oldest turns; `error` refuses new turns, except
    answers to a pending question."""
    ttl_hours: Annotated[Hours, About("hours", off=0)] = 3
    """How long after its last turn a thread of a tool expires. If off, `auto_prune_days` applies,
    as to other threads."""
    sweep_interval_minutes: Annotated[Minutes, About("minutes", off=0)] = 15
    """How often a running chat or server deletes expired threads, if `auto_prune_days` is set; a
    server also deletes expired items of the store."""
    auto_prune_days: Annotated[Days, About("days", off=0)] = 0
    """How long after its last turn a thread expires and is deleted; 30 suits most uses. If off,
    threads are deleted only on request."""
    list_limit: Annotated[Count, About("threads", off=0)] = 10
    """How many threads a list shows by default; if off, all."""
    title_length: Annotated[Count, About("characters", off=0)] = 100
    """How much of a title a list shows. A thread's first message sets a title of at most 100
    characters."""

    # -- what a model is shown ---------------------------------------------------------------------

    model: Text = ""
    """The chat model for what the rules cannot decide, like `openai:gpt-5-mini`. If empty, only the
    rules are used. Needs the extra `agents`, and the API key where its provider looks for it:
    settings hold no secrets."""
    strategy: Annotated[
        Literal["window", "summary", "hybrid", "messages"], BeforeValidator(_strategy)
    ] = "summary"
    """What replaces messages that are left out: `window` (or `simple`), a line with their number;
    `summary` (or `summarization`), a summary; `hybrid`, a summary and the full text of messages
    marked as important; `messages`, a summary, triggered by the number of messages instead of their
    size."""
    max_history_tokens: Annotated[Count, About("tokens", off=0)] = 4_096
    """The token budget of a request if the context window is unknown: neither
    `context_window_tokens` nor the model's profile has it."""
    max_history_messages: Annotated[Count, About("messages", off=0)] = 40
    """With the strategy `messages`: above how many messages the middle of the history is left
    out."""
    keep_recent_messages: Annotated[Count, About("messages", off=0)] = 20
    """How many of the newest messages are kept in full when others are summarised or left out, as
    far as they fit. The strategy `messages` keeps half of `max_history_messages` instead."""
    token_counter: Literal["auto", "approximate", "tiktoken"] = "auto"
    """How tokens are counted: `tiktoken`, with the tokenizer of the model, which must be on this
    machine; `approximate`, without a tokenizer; `auto`, with the tokenizer if it is available."""
    tool_output_trim_chars: Annotated[Count, About("characters", off=0)] = 2_000
    """How much of an old tool output is sent when space is needed. All of it stays stored."""
    tool_output_offload_tokens: Annotated[Count, About("tokens", off=0)] = 0
    """Above how many tokens of old tool output it is offloaded: only its beginning and end are
    sent, and the tool `read_tool_output` reads the rest from storage. 30,000 suits large
    windows."""
    tool_output_protected_tokens: Annotated[Count, About("tokens")] = 50_000
    """How much of the newest tool output is never offloaded."""
    summarization_model: Text = ""
    """The chat model that writes summaries. If empty, the application's own model; without one, the
    summary is an extract."""
    summary_prompt_file: Annotated[Path, About(is_path=True)] = ""
    """The file with the summary prompt. If empty, the built-in prompt."""
    verify_summary: bool = True
    """Whether a second model call checks a summary for missing facts."""
    detect_loops: bool = True
    """Whether a model that repeats the same tool call with the same result is warned at the third
    time and stopped at the sixth."""
    strip_thoughts: bool = True
    """Whether the model's reasoning in earlier turns is left out of requests."""
    context_window_tokens: Annotated[Count, About("tokens")] = 0
    """The context window of the model; 0 for the one in its profile."""
    safety_margin_tokens: Annotated[Count, About("tokens", off=0)] = 512
    """How much of the context window stays free because counts are approximate, at most an eighth
    of it."""
    response_budget_tokens: Annotated[Count, About("tokens", off=0)] = 16_000
    """How much of the context window is reserved for the answer, at most a quarter of it."""
    history_budget_tokens: Annotated[Count, About("tokens", off=0)] = 50_000
    """How much of the rest the history may take when files are sent too, at most a third of it."""
    file_budget_tokens: Annotated[Count, About("tokens", off=0)] = 100_000
    """How much of the rest files may take."""
    max_recent_files: Annotated[Count, About("files", off=0)] = 0
    """How many files of a conversation are listed, latest first; if off, all."""

    _origins: dict[str, Origin] = PrivateAttr(default_factory=dict)

    # -- where they come from ----------------------------------------------------------------------

    @property
    def origins(self) -> Mapping[str, Origin]:
        """Where the value of each setting came from."""
        return MappingProxyType(
            {name: self._origins.get(name, DEFAULT) for name in type(self).model_fields}
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Where values are looked for, in this order; called by pydantic-settings."""
        return (
            init_settings,
            EnvironmentSource(settings_cls),
            FileSource(settings_cls, "project file", project_file()),
            FileSource(settings_cls, "user file", user_file()),
        )

    @model_validator(mode="wrap")
    @classmethod
    def _note_origins(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Unwrap the values of the sources, and remember their origins for messages."""
        if not isinstance(data, Mapping):
            return handler(data)
        values = {
            name: value if isinstance(value, Found) else Found(value, ARGUMENT)
            for name, value in data.items()
        }
        try:
            settings = handler({name: source_value.value for name, source_value in values.items()})
        except ValidationError as error:
            raise SettingsError(mistakes(error, values, cls.model_fields)) from None
        settings._origins = {name: source_value.origin for name, source_value in values.items()}
        return settings

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, masked(value) if isinstance(value, str) else value
