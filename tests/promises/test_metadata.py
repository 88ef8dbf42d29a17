"""Promise: secrets in `configurable` do not become metadata, and everything else does."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from small_graphs import chain, config, saying

from langmem_ext import DeltaSaver

PLAIN = (
    *("author", "max_tokens", "total_tokens", "monkey", "keyboard", "tokenizer", "authority"),
    *("patient", "spinner", "langgraph_auth_user_id"),
)
SECRET = (
    *("pat", "github_pat", "ssn", "api_key", "openai-key", "apikey", "password", "access_token"),
    *("access_tokens", "authToken", "basic_auth", "client_secret", "GITHUB_TOKEN", "dbPwd", "PIN2"),
)


def graph(saver: DeltaSaver) -> Any:
    return chain(saying(), saver=saver)


def invoke(compiled: Any, **configurable: Any) -> None:
    compiled.invoke({"messages": ["hi"]}, config(**configurable))


def test_names_are_secret_by_their_whole_words() -> None:
    with DeltaSaver() as saver:
        plain: dict[str, Any] = {name: f"a {name}" for name in PLAIN} | {"max_tokens": 9}
        invoke(graph(saver), **plain, **dict.fromkeys(SECRET, "x"))
        found = saver.get_tuple(config())
        assert found is not None
        assert found.metadata.items() >= plain.items()
        assert found.metadata.keys().isdisjoint(SECRET)


async def test_a_name_that_is_left_out_is_told_once_and_so_is_a_filter_on_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DeltaSaver() as saver, caplog.at_level(logging.WARNING, "langmem_ext"):
        for _ in range(3):
            invoke(graph(saver), partner_secret="x")
        assert caplog.text.count("'partner_secret' looks like the name of a secret") == 1
        assert [found async for found in saver.alist(None, filter={"partner_pin": "x"})] == []
        assert [*saver.list(None, filter={"partner_pin": "x"})] == []
        assert caplog.text.count("'partner_pin' looks like the name of a secret") == 1
        assert "metadata_keys" in caplog.text


def test_names_that_are_given_are_taken_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "langmem_ext"):
        saver = DeltaSaver(DeltaSaver().log, metadata_keys=["routing_key"])
        invoke(graph(saver), routing_key="r", author="ann")
        [*found] = saver.list(None, filter={"routing_key": "r"})
        assert found
        assert "author" not in found[0].metadata
    assert caplog.records == []
