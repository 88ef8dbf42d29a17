"""Promise: a config becomes metadata as in LangGraph, but nothing that looks like a secret."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import get_checkpoint_metadata

from langmem_ext import DeltaSaver
from langmem_ext.checkpointer.metadata import metadata_of

SECRETS = {
    "openai_api_key": "sk-1",
    "access_token": "t",
    "Client_Secret": "s",
    "db_password": "p",
    "authorization": "a",
    "AUTH": "b",
}
PLAIN = {
    "user_id": "u1",
    "tier": 3,
    "beta": True,
    "rate": 0.5,
    "nul": "a\0b",
    "__pregel_x": "no",
    "thread_id": "t",
    "object": object(),
}


def test_what_is_no_secret_is_copied_as_langgraph_copies_it() -> None:
    config: Any = {
        "configurable": PLAIN,
        "metadata": {**PLAIN, "run_name": "r", "langgraph_step": 1},
    }
    metadata: Any = {"source": "input", "step": 1, "parents": {}, "tier": 9}
    assert metadata_of(config, metadata) == get_checkpoint_metadata(config, metadata)
    assert list(metadata_of(config, metadata)) == list(get_checkpoint_metadata(config, metadata))


def test_a_secret_of_the_config_is_not_copied_by_either_way() -> None:
    config: Any = {
        "configurable": {**PLAIN, **SECRETS},
        "metadata": {**PLAIN, **SECRETS, "cache_key": "the application's own"},
    }
    found = metadata_of(config, {"source": "input"})
    assert not set(SECRETS) & set(found)
    assert dict(found)["cache_key"] == "the application's own"


SECRET_NAMES = (
    *(
        "bearer",
        "jwt",
        "cookie",
        "credentials",
        "passwd",
        "pwd",
        "passphrase",
        "pin",
        "cvv",
        "dsn",
        "database_url",
        "connection_string",
    ),
    *(
        "sas",
        "signature",
        "userJWT",
        "dbPwd",
        "PIN",
        "pin2",
        "CVV_CODE",
        "session-cookies",
        "gatewayCredentials",
        "databaseURL",
    ),
    *(
        "ConnectionString",
        "x-amz-signature",
        "azure.sas",
        "pass_phrase",
        "redis_uris",
        "connectionstring",
        "JWTs",
        "smtpPass",
    ),
    *("openai_api_key", "apikey", "accessToken", "authorization", "cookie_consent_shown"),
)
HARMLESS_NAMES = (
    *(
        "spinner",
        "opinion",
        "mapping",
        "user_id",
        "Spinning",
        "pinned",
        "bypass",
        "passenger",
        "design",
        "assignee",
        "sash",
        "datastring",
    ),
    *(
        "url",
        "base_url",
        "connection_id",
        "database",
        "string",
        "usa",
        "cookbook",
        "signal",
        "credits",
        "significant",
        "p_in_g",
        "größe",
    ),
)


def test_a_name_is_a_secrets_by_its_words() -> None:
    config: Any = {"configurable": dict.fromkeys((*SECRET_NAMES, *HARMLESS_NAMES), "value")}
    assert set(metadata_of(config, {})) == set(HARMLESS_NAMES)


def test_what_the_graph_itself_says_stays() -> None:
    assert dict(metadata_of({"configurable": SECRETS}, {"access_token": "said by the graph"})) == {
        "access_token": "said by the graph"
    }  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((), set()),
        (["user_id"], {"user_id"}),
        ({"openai_api_key", "tier"}, {"openai_api_key", "tier"}),
    ],
)
def test_names_that_are_given_are_the_ones_that_are_copied(keys: Any, expected: set[str]) -> None:
    found = metadata_of({"configurable": {**PLAIN, **SECRETS}}, {}, keys)
    assert set(found) == expected


def test_the_saver_applies_it_and_passes_it_on_to_a_bound_one() -> None:
    with DeltaSaver.from_conn_string(":memory:") as saver:
        chosen = DeltaSaver(saver.log, metadata_keys=["openai_api_key"]).for_owner("u1")
        for number, one in enumerate((saver, chosen)):
            config: Any = {
                "configurable": {
                    "thread_id": str(number),
                    "checkpoint_ns": "",
                    "user_id": "u",
                    **SECRETS,
                }
            }
            one.put(config, {"id": "1", "channel_values": {}}, {"source": "input"}, {})  # type: ignore[typeddict-item]
        assert [
            dict(found.metadata) for found in saver.list({"configurable": {"thread_id": "0"}})
        ] == [{"source": "input", "user_id": "u"}]
        assert [
            dict(found.metadata) for found in saver.list({"configurable": {"thread_id": "1"}})
        ] == [{"source": "input", "openai_api_key": "sk-1"}]
