"""Settings configure a context as code does: same policy, budget, model and prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langmem_ext import (
    ApproximateCounter,
    Budget,
    ContextGovernor,
    ContextMiddleware,
    ContextPolicy,
    InvalidInput,
    Settings,
    SettingsError,
)


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in Settings.model_fields:
        monkeypatch.delenv(f"LANGMEM_EXT_{name.upper()}", raising=False)
    return tmp_path


def model_of(window: int, **more: Any) -> FakeListChatModel:
    """A double of a chat model whose profile states its window."""
    return FakeListChatModel(responses=["said " * 40], profile={"max_input_tokens": window, **more})


def test_each_setting_changes_its_part_of_the_policy() -> None:
    assert ContextPolicy.from_settings(Settings()) == ContextPolicy()
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"strategy": "simple"}, {"strategy": "window"}),
        ({"strategy": "summarization"}, {"strategy": "summary"}),
        ({"max_history_messages": 12}, {"max_messages": 12}),
        ({"keep_recent_messages": 6}, {"keep_recent_messages": 6}),
        ({"tool_output_trim_chars": 0}, {"tool_output_trim_chars": 0}),
        ({"tool_output_offload_tokens": 9_000}, {"offload": True, "least_offload_tokens": 9_000}),
        ({"tool_output_protected_tokens": 7}, {"protected_tokens": 7}),
        ({"verify_summary": False}, {"verify": False}),
        ({"detect_loops": False}, {"nudge_at": 0, "stop_at": 0}),
        ({"strip_thoughts": False}, {"thoughts": "never"}),
    ]
    for changed, policy in changes:
        assert ContextPolicy.from_settings(Settings(**changed)) == ContextPolicy(**policy)


def test_the_budget_is_the_windows_share_where_anything_says_how_large_it_is() -> None:
    parts = {"response": 16_000, "history": 50_000, "files": 100_000, "margin": 512}
    small, large = Settings(context_window_tokens=64_000), model_of(200_000)
    assert Budget.from_settings(small) == Budget.of_window(64_000, **parts)
    assert Budget.from_settings(Settings(), large) == Budget.of_window(200_000, **parts)
    assert Budget.from_settings(small, large).window == 64_000
    answers = model_of(200_000, max_output_tokens=4_000)
    assert Budget.from_settings(Settings(), answers).response == 4_000
    less = Settings(
        response_budget_tokens=1_000,
        safety_margin_tokens=0,
        history_budget_tokens=5_000,
        file_budget_tokens=6_000,
    )
    assert Budget.from_settings(less, model_of(32_000)) == Budget(32_000, 1_000, 5_000, 6_000)
    # Where nothing says how large the window is, the settings say what a request may cost.
    assert Budget.from_settings(Settings()).request == 4_096
    silent = FakeListChatModel(responses=[])
    assert Budget.from_settings(Settings(max_history_tokens=900), silent).request == 900
    assert Budget.from_settings(Settings(max_history_tokens=0)).request == 128_000 - 16_000 - 512


def test_a_governor_has_all_of_it_from_the_settings(nothing_set: Path) -> None:
    (nothing_set / "prompt.txt").write_text("Say it in one line.", encoding="utf-8")
    settings = Settings(
        summary_prompt_file="prompt.txt",
        token_counter="approximate",
        strategy="window",
        context_window_tokens=10_000,
    )
    governor = ContextGovernor.from_settings(
        settings, model=model_of(99_000), system="Be brief.", params=["order_id"]
    )
    assert (governor.policy.strategy, governor.prompt) == ("window", "Say it in one line.")
    assert (governor.system, governor.params) == ("Be brief.", {"order_id"})
    assert governor.counter.name == ApproximateCounter().name
    assert governor.budget == Budget.from_settings(settings)
    assert ContextGovernor.from_settings(settings).model is None


def test_a_governor_from_settings_follows_the_rules_of_the_model_that_is_sent_its_requests() -> (
    None
):
    class MistralDouble(FakeListChatModel):
        """A double of a model that says whose it is."""

        def _get_ls_params(self, *args: Any, **kwargs: Any) -> Any:
            return {"ls_provider": "mistral"}

    model = MistralDouble(responses=[], profile={"max_input_tokens": 8_000})
    settings = Settings(token_counter="approximate")
    for given, provider in (
        ({"model": model}, "mistral"),
        ({"model": model, "provider": "openai"}, "openai"),
        ({}, None),
    ):
        assert ContextGovernor.from_settings(settings, **given).provider == provider  # type: ignore[arg-type]


def test_a_prompt_or_a_model_that_cannot_be_used_is_named(nothing_set: Path) -> None:
    (nothing_set / "a").write_bytes(b" \n")
    (nothing_set / "b").write_bytes(b"\xff")
    for name, reason in (("none.txt", "No such file"), ("a", "no text"), ("b", "UTF-8")):
        for make in (ContextGovernor.from_settings, ContextMiddleware.from_settings):
            with pytest.raises(SettingsError, match=rf"summary_prompt_file: '{name}' .*{reason}"):
                make(Settings(summary_prompt_file=name))
    with pytest.raises(InvalidInput, match="cannot be used"):
        ContextGovernor.from_settings(Settings(summarization_model="nobody:nothing"))


@pytest.mark.parametrize("count", [0, 8])
def test_the_settings_say_how_many_of_the_newest_messages_are_shown_word_for_word(
    count: int,
) -> None:
    said = [
        message
        for turn in range(40)
        for message in (HumanMessage("question " * 20), AIMessage("word " * 20))
    ]
    calls = [AIMessage("", tool_calls=[{"name": "read", "args": {}, "id": name}]) for name in "ab"]
    output, latest = (
        ToolMessage("a line of a file\n" * 130, tool_call_id="a"),
        ToolMessage("empty", tool_call_id="b"),
    )
    newest = [calls[0], output, AIMessage("Read."), HumanMessage("Go on."), calls[1], latest]
    settings = Settings(
        strategy="window",
        token_counter="approximate",
        max_history_tokens=2_000,
        keep_recent_messages=count,
    )
    sent = (
        ContextGovernor.from_settings(settings)
        .govern([*said, *newest, AIMessage("So."), HumanMessage("And now?")])
        .messages
    )
    assert (output in sent) is bool(count)


class Sent(BaseCallbackHandler):
    """How many messages models were sent."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[Any]], **kwargs: Any
    ) -> None:
        self.counts.append(len(messages[0]))


def test_a_middleware_governs_by_the_same_settings() -> None:
    settings = Settings(strategy="window", token_counter="approximate", max_history_tokens=600)
    said = [
        message
        for turn in range(30)
        for message in (HumanMessage(f"question {turn}"), AIMessage("word " * 40))
    ]
    sent = Sent()
    for model in (FakeListChatModel(responses=["so"]), model_of(50_000)):
        agent = create_agent(model, middleware=[ContextMiddleware.from_settings(settings)])
        agent.invoke({"messages": [*said, HumanMessage("and now?")]}, {"callbacks": [sent]})
    few, all_of_them = sent.counts
    assert 2 < few < 20, "max_history_tokens, where the model does not say how much it takes"
    assert all_of_them == len(said) + 1
