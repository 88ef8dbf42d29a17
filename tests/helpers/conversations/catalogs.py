"""The catalogs of `catalogs.yaml`."""

from __future__ import annotations

from pathlib import Path

import yaml

from langmem_ext import IntentCatalog


def catalog_named(name: str) -> IntentCatalog:
    text = Path(__file__).with_suffix(".yaml").read_text("utf-8")
    return IntentCatalog.from_dict(yaml.safe_load(text)[name])
