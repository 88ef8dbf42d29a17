"""`Settings`: every setting, its default, its unit, and what turns it off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, PrivateAttr, StringConstraints, ValidationError, model_validator
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

    `Settings(ttl_hours=12)` takes each value from the first place that has it: an argument, the environment (`LANGMEM_EXT_TTL_HOURS`),
    `langmem.yaml` in the current folder, the user's file (`~/.config/langmem-ext/langmem.yaml`, or where the system keeps such files), the
    default. A variable that is empty and a key without a value count as not there. Making one reads two small files: once, at the start, is
    the time for it.

    Raises:
        SettingsError: A file cannot be read, a key or variable is no setting, or a value cannot be used: every mistake with its place.

    Example:
        `saver = DeltaSaver.open(Settings().storage_path)`
    """

    model_config = SettingsConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    # -- what is stored, and where -------------------------------------------------------------------------------------------------------

    enabled: bool = True
    """Whether conversations are kept. Without, a chat that names no database of its own remembers until it ends, and stores nothing."""
    storage_path: Annotated[
        Path,
        StringConstraints(min_length=1),
        About(
            is_path=True,
            variable="LANGMEM_EXT_DB",
            takes="a database is named by a path, ':memory:' or a URL like 'postgresql://user@host/name'",
        ),
    ] = "memory.db"
    """The database that a command uses if it is given none: a path, `:memory:` or a URL like `postgresql://user@host/name`. `~` is the home
    folder."""
    owner: Text = ""
    """Whose threads are seen and made; with none, all threads are seen, and new ones belong to nobody."""
    tz: Annotated[Zone, About(takes="a time zone is named like Europe/Rome")] = ""
    """The time zone of whoever chats, like `Europe/Rome`: what "tomorrow" counts from; with none, this machine's."""
    synchronous: Literal["full", "normal"] = "full"
    """What survives a loss of power: `full`, all that was acknowledged; `normal`, a sound database that may lack the last moments."""
    compress: bool = False
    """Compress what is written from now on, where that saves a tenth; needs the extra `zstd`."""
    on_damage: Literal["raise", "skip"] = "raise"
    """What going on with a conversation that is damaged does: `raise` an error that names the row, or `skip` it and begin a new one."""

    # -- threads -------------------------------------------------------------------------------------------------------------------------

    max_turns: Annotated[Count, About("turns", off=0)] = 50
    """How many turns of a thread are shown, or it may have."""
    on_limit: Literal["trim", "error"] = "trim"
    """What happens at `max_turns`: `trim`, the oldest turns are not shown any more; `error`, the turn is refused, but for an answer that is
    waited for."""
    ttl_hours: Annotated[Hours, About("hours", off=0)] = 3
    """How long after its last turn a tool's thread expires; off, it lives as the other threads do, for which see `auto_prune_days`."""
    sweep_interval_minutes: Annotated[Minutes, About("minutes", off=0)] = 15
    """How often a running chat looks for expired threads, if there is `auto_prune_days`."""
    auto_prune_days: Annotated[Days, About("days", off=0)] = 0
    """How long after its last turn a thread is deleted; 30 suits most. Off, nothing is deleted unless somebody asks."""
    list_limit: Annotated[Count, About("threads", off=0)] = 10
    """How many threads a list shows unless it is told otherwise; off, all."""
    title_length: Annotated[Count, About("characters", off=0)] = 100
    """How much of a thread's title a list shows; its first question gives it one of at most 100 characters."""

    # -- what a model is shown -----------------------------------------------------------------------------------------------------------

    model: Text = ""
    """The chat model that reads what the rules leave open, like `openai:gpt-5-mini`; with none, the rules alone. It needs the extra
    `agents`, and its key stands where its provider looks for it: no setting holds a secret."""
    strategy: Annotated[Literal["window", "summary", "hybrid", "messages"], BeforeValidator(_strategy)] = "summary"
    """What stands for messages that are left out: `window` (or `simple`), a line that says how many they are; `summary` (or
    `summarization`), a summary of them; `hybrid`, a summary, and word for word what was marked as important; `messages`, a summary, by the
    number of messages and not by their size."""
    max_history_tokens: Annotated[Count, About("tokens", off=0)] = 4_096
    """How much a model is sent, where neither `context_window_tokens` nor the model itself says how much it takes."""
    max_history_messages: Annotated[Count, About("messages", off=0)] = 40
    """With the strategy `messages`: from how many messages on the middle of a history is left out."""
    keep_recent_messages: Annotated[Count, About("messages", off=0)] = 20
    """How many of the newest messages are shown word for word where others are summarised or left out, as far as they fit; with the
    strategy `messages`, half of `max_history_messages` are."""
    token_counter: Literal["auto", "approximate", "tiktoken"] = "auto"
    """How tokens are counted: `tiktoken`, by the tokenizer that fits the model, which must be on this machine; `approximate`, without one;
    `auto`, by the tokenizer where it is there."""
    tool_output_trim_chars: Annotated[Count, About("characters", off=0)] = 2_000
    """How much of an old tool output is shown where room is needed; all of it stays stored."""
    tool_output_offload_tokens: Annotated[Count, About("tokens", off=0)] = 0
    """From how many tokens of old tool output on only its beginning and its end are shown, and `read_tool_output` reads the rest from where
    it is stored; 30,000 suits large windows."""
    tool_output_protected_tokens: Annotated[Count, About("tokens")] = 50_000
    """How much of the newest tool output is shown whole then."""
    summarization_model: Text = ""
    """The chat model that summarises; with none, the application's own, and where that has none, a summary is an extract."""
    summary_prompt_file: Annotated[Path, About(is_path=True)] = ""
    """The file with the prompt that asks for a summary; with none, the built-in prompt."""
    verify_summary: bool = True
    """Whether a second call of the model looks for what a summary has left out."""
    detect_loops: bool = True
    """Whether a model that repeats the same tool call with the same result is told so, from the third time on, and stopped at the sixth."""
    strip_thoughts: bool = True
    """Whether a model's reasoning is left out of what it is shown of earlier turns."""
    context_window_tokens: Annotated[Count, About("tokens")] = 0
    """How much the model takes; 0 for what the model itself says."""
    safety_margin_tokens: Annotated[Count, About("tokens", off=0)] = 512
    """How much of the model's window is left free because counts are approximate, but never more than an eighth."""
    response_budget_tokens: Annotated[Count, About("tokens", off=0)] = 16_000
    """How much of the window is kept for the answer, but never more than a quarter."""
    history_budget_tokens: Annotated[Count, About("tokens", off=0)] = 50_000
    """How much of what is left the history may take where files are shown too, but never more than a third."""
    file_budget_tokens: Annotated[Count, About("tokens", off=0)] = 100_000
    """How much of it files may take."""
    max_recent_files: Annotated[Count, About("files", off=0)] = 0
    """How many of the files that a conversation has named are listed, the last ones; off, all."""

    _origins: dict[str, Origin] = PrivateAttr(default_factory=dict)

    # -- where they come from ------------------------------------------------------------------------------------------------------------

    @property
    def origins(self) -> Mapping[str, Origin]:
        """Where the value of each setting came from."""
        return MappingProxyType({name: self._origins.get(name, DEFAULT) for name in type(self).model_fields})

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
        """Unwrap what the sources found, and remember where, for who asks and for the message about a mistake."""
        if not isinstance(data, Mapping):
            return handler(data)
        found = {name: value if isinstance(value, Found) else Found(value, ARGUMENT) for name, value in data.items()}
        try:
            settings = handler({name: one.value for name, one in found.items()})
        except ValidationError as error:
            raise SettingsError(mistakes(error, found, cls.model_fields)) from None
        settings._origins = {name: one.origin for name, one in found.items()}
        return settings

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, masked(value) if isinstance(value, str) else value
