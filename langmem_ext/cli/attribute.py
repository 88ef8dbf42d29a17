"""Something of the user's own that an option names: an attribute of a file or of a module."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from langmem_ext.cli.errors import in_a_line
from langmem_ext.errors import InvalidInput, LangmemExtError


def load(name: str, option: str) -> Any:
    """What `name` names.

    Args:
        name: `file.py:attribute` or `module:attribute`; modules are looked for in the current
            folder too.
        option: The option that it was given with, for errors.

    Raises:
        InvalidInput: There is nothing of that name, or it cannot be loaded.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise InvalidInput(
            f"{option} {name!r} is invalid: write file.py:attribute or module:attribute"
        )
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = (
            _file_module(Path(place), option) if place.endswith(".py") else import_module(place)
        )
        return getattr(module, attribute)
    except LangmemExtError:
        raise
    except Exception as error:  # whatever a module of the user's does when it is imported
        raise InvalidInput(f"{option} {name!r} cannot be loaded ({in_a_line(error)})") from error


def _file_module(path: Path, option: str) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(f"{path} not found: write {option} file.py:attribute")
    sys.path.insert(0, str(path.resolve().parent))
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} is not a Python module")
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module
