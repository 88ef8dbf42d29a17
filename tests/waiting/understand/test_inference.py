"""The type and role of a parameter follow from its name and description."""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from langmem_ext import IntentCatalog, Param, ParamType

Names: TypeAlias = list[str | tuple[str, str]]

TYPES: dict[str | None, Names] = {
    "identifier": ["order_id", "orderId", "confirmation_number"],
    "email": ["email", "contact_email"],
    "phone": ["phone_number"],
    "address": ["shipping_address"],
    "date": ["check_in_date", "birthday"],
    "time": ["pickup_time"],
    "money": ["transfer_amount", "price"],
    "integer": ["number_of_people", "party_size", "quantity", ("x", "Number of people")],
    "boolean": ["is_gift", ("wrapped", "Whether it is wrapped")],
    "place": ["city", "departure_airport", ("city_of_event", "City where the event is")],
    "person": ["first_name", "recipient_name"],
    "name": ["movie_name", "title"],
    "number": [("weight", "Weight in kg")],
    "text": [("genre", "Main genre of the movie"), "price_range", "reason", "zzz"],
}
ROLES: dict[str | None, Names] = {
    "from": [
        *("origin", "from_station", "departure_date", "pickup_city", "check_in_date"),
        ("stop", "where the passengers get on"),
    ],
    "to": [
        *("destination", "to_station", "return_date", "dropoff_date", "end_time"),
        ("where", "City where the journey ends"),
    ],
    None: ["city", "order_id", ("new_date", "new day of the pickup")],
}


def declared(name: str, description: str = "", **more: Any) -> Param:
    """A parameter that a catalog declares with this name and description."""
    params = {name: {"description": description, **more}}
    return IntentCatalog.from_dict({"intents": [{"id": "a"}], "params": params}).param(name)


def test_type_and_role_follow_from_name_and_description() -> None:
    for wanted, field, more in ((TYPES, "type", {}), (ROLES, "role", {"type": "place"})):
        for value, given_ in wanted.items():
            for words in given_:
                name, *description = [words] if isinstance(words, str) else words
                param = declared(name, *description, **more)
                assert getattr(param, field) == value, words


@given(st.from_regex(r"[a-z][a-z_]{0,39}", fullmatch=True), st.text(max_size=80))
def test_any_name_has_a_type_and_a_role_or_none(name: str, description: str) -> None:
    param = declared(name, description)
    assert param.type in ParamType
    assert param.role in ("from", "to", None)
