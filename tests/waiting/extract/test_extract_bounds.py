"""What bounds a catalog may give. What is wrong with a value outside of them: `tests/cases`."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pytest
import yaml

from langmem_ext import CatalogError, IntentCatalog, Param

CASES = yaml.safe_load(Path(__file__).with_name("bounds.yaml").read_text("utf-8"))


def declared(kind: str, bounds: object, **more: object) -> Param:
    data = {"intents": [{"id": "a"}], "params": {"x": {"type": kind, "bounds": bounds, **more}}}
    return IntentCatalog.from_dict(data).param("x")


def test_bounds_are_a_list_of_two() -> None:
    for kind, bounds, kept in CASES["kept"]:
        assert declared(kind, bounds).bounds == tuple(kept), (kind, bounds)
    assert declared("time", [time(9), None]).bounds == ("09:00", None)
    assert declared("time", None).bounds is None
    assert declared("duration", [1, 24], units="hours").bounds == (1, 24)


@pytest.mark.parametrize(("kind", "bounds", "mistake"), CASES["mistakes"])
def test_bounds_that_bound_nothing_are_a_mistake_of_the_catalog(
    kind: str, bounds: object, mistake: str
) -> None:
    with pytest.raises(CatalogError, match=f"params.x.bounds: .*{mistake}"):
        declared(kind, bounds)


def test_units_and_a_future_need_their_types() -> None:
    with pytest.raises(CatalogError, match="'PT1H' is not a number of the parameter's units"):
        declared("duration", ["PT1H", None], units="hours")
    assert declared("date", None, future=True).future
    with pytest.raises(CatalogError, match=r"params.x.future: `future` needs a date"):
        declared("time", None, future=True)
