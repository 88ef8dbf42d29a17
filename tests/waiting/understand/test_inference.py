"""The type and role of a parameter follow from its name, description and values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.waiting.catalog.inference import infer_role, infer_type
from langmem_ext.waiting.catalog.param import ParamType


@pytest.mark.parametrize(
    ("name", "description", "kind"),
    [
        ("order_id", "", ParamType.IDENTIFIER),
        ("orderId", "", ParamType.IDENTIFIER),
        ("confirmation_number", "", ParamType.IDENTIFIER),
        ("email", "", ParamType.EMAIL),
        ("contact_email", "", ParamType.EMAIL),
        ("phone_number", "", ParamType.PHONE),
        ("shipping_address", "", ParamType.ADDRESS),
        ("check_in_date", "", ParamType.DATE),
        ("birthday", "", ParamType.DATE),
        ("pickup_time", "", ParamType.TIME),
        ("transfer_amount", "", ParamType.MONEY),
        ("price", "", ParamType.MONEY),
        ("number_of_people", "", ParamType.INTEGER),
        ("party_size", "", ParamType.INTEGER),
        ("quantity", "", ParamType.INTEGER),
        ("x", "Number of people", ParamType.INTEGER),
        ("is_gift", "", ParamType.BOOLEAN),
        ("wrapped", "Whether it is wrapped", ParamType.BOOLEAN),
        ("city", "", ParamType.PLACE),
        ("departure_airport", "", ParamType.PLACE),
        ("city_of_event", "City where the event is", ParamType.PLACE),
        ("first_name", "", ParamType.PERSON),
        ("recipient_name", "", ParamType.PERSON),
        ("movie_name", "", ParamType.NAME),
        ("title", "", ParamType.NAME),
        ("genre", "Main genre of the movie", ParamType.TEXT),
        ("price_range", "", ParamType.TEXT),
        ("reason", "", ParamType.TEXT),
        ("weight", "Weight in kg", ParamType.NUMBER),
        ("zzz", "", ParamType.TEXT),
    ],
)
def test_the_type_follows_from_name_and_description(
    name: str, description: str, kind: ParamType
) -> None:
    assert infer_type(name, description) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["small", "large"], ParamType.ENUM),
        (["True", "False"], ParamType.BOOLEAN),
        (["yes", "no"], ParamType.BOOLEAN),
        (["1", "2", "3"], ParamType.INTEGER),
        (["1", "2", "many"], ParamType.ENUM),
    ],
)
def test_given_values_decide_the_type(values: list[str], kind: ParamType) -> None:
    assert infer_type("city", "", values) == kind


@pytest.mark.parametrize(
    ("name", "description", "role"),
    [
        ("origin", "", "from"),
        ("from_station", "", "from"),
        ("departure_date", "", "from"),
        ("pickup_city", "", "from"),
        ("check_in_date", "", "from"),
        ("destination", "", "to"),
        ("to_station", "", "to"),
        ("return_date", "", "to"),
        ("dropoff_date", "", "to"),
        ("end_time", "", "to"),
        ("where", "City where the journey ends", "to"),
        ("city", "", None),
        ("order_id", "", None),
    ],
)
def test_the_role_follows_from_name_then_description(
    name: str, description: str, role: str | None
) -> None:
    assert infer_role(name, description) == role


@given(st.text(max_size=40), st.text(max_size=80), st.lists(st.text(max_size=10), max_size=4))
def test_any_name_has_a_type_and_a_role_or_none(
    name: str, description: str, values: list[str]
) -> None:
    assert infer_type(name, description, values) in ParamType
    assert infer_role(name, description) in ("from", "to", None)
