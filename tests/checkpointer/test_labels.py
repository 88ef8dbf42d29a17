"""Promise: a config becomes metadata as in LangGraph, but nothing that looks like a secret."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint, get_checkpoint_metadata

from langmem_ext import DeltaSaver

SECRETS = """
    openai_api_key access_token Client_Secret db_password authorization AUTH bearer jwt cookie
    credentials passwd pwd passphrase pin cvv dsn database_url connection_string sas signature
    userJWT dbPwd PIN pin2 CVV_CODE session-cookies gatewayCredentials databaseURL ConnectionString
    x-amz-signature azure.sas pass_phrase redis_uris connectionstring JWTs smtpPass apikey
    accessToken cookie_consent_shown
"""
HARMLESS = """
    spinner opinion mapping user_id Spinning pinned bypass passenger design assignee sash datastring
    url base_url connection_id database string usa cookbook signal credits significant p_in_g größe
"""
SECRET = dict.fromkeys(SECRETS.split(), "x")
OTHER = dict.fromkeys(HARMLESS.split(), "value")
PLAIN = {
    **OTHER,
    "tier": 3,
    "beta": True,
    "rate": 0.5,
    "nul": "a\0b",
    "__pregel_x": "no",
    "object": object(),
}


def metadata_of(config: dict[str, Any], metadata: Any, *, keys: Any = None) -> dict[str, Any]:
    """What a saver stores of a config."""
    with DeltaSaver(metadata_keys=keys) as saver:
        place = {"thread_id": "t", "checkpoint_ns": "", **config.get("configurable", {})}
        given: Any = {**config, "configurable": place}
        found = saver.get_tuple(saver.put(given, empty_checkpoint(), metadata, {}))
        assert found is not None
        return dict(found.metadata)


def test_what_is_no_secret_is_copied_as_langgraph_copies_it() -> None:
    config: Any = {
        "configurable": {**PLAIN, "thread_id": "t"},
        "metadata": {**PLAIN, "run_name": "r", "langgraph_step": 1},
    }
    metadata: Any = {"source": "input", "step": 1, "parents": {}, "tier": 9}
    assert metadata_of(config, metadata) == get_checkpoint_metadata(config, metadata)


def test_a_name_is_a_secrets_by_its_words_whichever_way_it_comes_in() -> None:
    given = {**SECRET, **OTHER}
    own: Any = {"source": "input", "step": 1}
    assert set(metadata_of({"configurable": given}, own)) == {*OTHER, *own}
    # LangGraph copies it into the metadata of a run, too.
    config = {"configurable": given, "metadata": {**given, "cache_key": "my own"}}
    assert set(metadata_of(config, own)) == {*OTHER, *own, "cache_key"}


def test_what_the_graph_itself_says_stays() -> None:
    config = {"configurable": SECRET}
    assert metadata_of(config, {"access_token": "said"}) == {"access_token": "said"}


@pytest.mark.parametrize("keys", [[], ["user_id"], {"openai_api_key", "tier"}])
def test_names_that_are_given_are_the_ones_that_are_copied(keys: Any) -> None:
    config = {"configurable": {**PLAIN, **SECRET}}
    assert set(metadata_of(config, {}, keys=keys)) == set(keys)


def test_a_saver_passes_its_names_on_to_a_bound_one() -> None:
    with DeltaSaver(metadata_keys=["openai_api_key"]) as saver:
        config: Any = {"thread_id": "t", "checkpoint_ns": "", "user_id": "u", "openai_api_key": "k"}
        saver.for_owner("u1").put({"configurable": config}, empty_checkpoint(), {}, {})
        assert [dict(found.metadata) for found in saver.list(None)] == [{"openai_api_key": "k"}]
