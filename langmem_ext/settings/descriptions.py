"""The descriptions of settings: the docstring below each field.

They are read from the source only when they are needed, because every command would pay for it:
pydantic's `use_attribute_docstrings` takes an eighth of the time of `langmem-ext threads list`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from langmem_ext.settings.model import Settings


@cache
def descriptions() -> Mapping[str, str]:
    """Each setting's description in one line; empty if the package has no source installed."""
    try:
        [settings] = ast.parse(inspect.getsource(Settings)).body
    except OSError:
        return {}
    assert isinstance(settings, ast.ClassDef)
    return {
        field.target.id: " ".join(words.value.value.split())
        for field, words in pairwise(settings.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant)
        if isinstance(words.value.value, str)
    }
