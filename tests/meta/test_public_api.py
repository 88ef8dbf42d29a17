"""What a user sees of the package: every name importable, documented, and loaded on use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from repository import ROOT

import langmem_ext

PACKAGE = ROOT / "langmem_ext"
HOUSE_WORDS = ("base", "common", "helper", "helpers", "manager", "misc", "util", "utils")
"""Names of modules that say nothing about what is in them."""

LONGEST_MODULE = 900


def documented(thing: object) -> bool:
    """Whether it has its own docstring: not inherited, nor a dataclass's signature."""
    text = (
        inspect.cleandoc(vars(thing).get("__doc__") or "")
        if inspect.isclass(thing)
        else inspect.getdoc(thing) or ""
    )
    name = getattr(thing, "__name__", "")
    return bool(text) and not text.startswith(f"{name}(")


def members(cls: type) -> Iterator[tuple[str, object]]:
    """The public functions and properties that the class or a parent of this package defines."""
    for owner in cls.__mro__:
        if not owner.__module__.startswith("langmem_ext"):
            continue
        for name, member in vars(owner).items():
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not name.startswith("_") and (
                inspect.isfunction(inner) or isinstance(inner, property)
            ):
                yield f"{owner.__name__}.{name}", inner


def typed_names() -> dict[str, str]:
    """What `langmem_ext/__init__.py` imports for type checkers: name to home."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    [guarded] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    found = {}
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom), ast.unparse(node)
        assert node.module is not None
        for alias in node.names:
            assert alias.asname is None, f"{alias.name} is imported under another name"
            found[alias.name] = node.module.removeprefix("langmem_ext.")
    return found


def test_names_are_sorted_and_there_once() -> None:
    assert langmem_ext.__all__ == sorted(set(langmem_ext.__all__))


def test_type_checkers_and_the_running_program_find_the_same_names() -> None:
    assert typed_names() == langmem_ext._HOMES
    assert sorted(langmem_ext._HOMES) == langmem_ext.__all__


def test_every_name_can_be_imported_and_says_what_it_is() -> None:
    for name in langmem_ext.__all__:
        thing = getattr(langmem_ext, name)
        assert thing is getattr(import_module(f"langmem_ext.{langmem_ext._HOMES[name]}"), name)
        assert name in dir(langmem_ext)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert documented(thing), f"{name} has no docstring"


def test_every_public_method_says_what_it_does() -> None:
    classes = [
        thing
        for name in langmem_ext.__all__
        if inspect.isclass(thing := getattr(langmem_ext, name))
    ]
    found = [(label, member) for cls in classes for label, member in members(cls)]
    assert {"DeltaSaver.put", "MessageLog.open"} <= {label for label, _ in found}
    assert sorted({label for label, member in found if not documented(member)}) == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'DeltaSafer'"):
        _ = langmem_ext.DeltaSafer


def loaded_by(code: str) -> set[str]:
    """The modules that a program imports."""
    program = f"import sys; before = {{*sys.modules}}; {code}; print(*({{*sys.modules}} - before))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {*done.stdout.split()}


def test_nothing_is_imported_before_it_is_needed() -> None:
    tops = {name.split(".")[0] for name in loaded_by("import langmem_ext; langmem_ext.__version__")}
    assert tops - {*sys.stdlib_module_names} == {"langmem_ext"}
    assert not tops & {"asyncio", "sqlite3", "logging"}
    serves = loaded_by("from langmem_ext.server import create_app; create_app(':memory:')")
    waiting = {name for name in serves if name.startswith("langmem_ext.waiting.")}
    assert waiting <= {"langmem_ext.waiting.state"}, "what reads answers comes with the first one"


def test_the_errors_share_one_root() -> None:
    errors = [
        thing
        for name in langmem_ext.__all__
        if inspect.isclass(thing := getattr(langmem_ext, name)) and issubclass(thing, Exception)
    ]
    assert len(errors) > 10
    assert [
        error.__name__ for error in errors if not issubclass(error, langmem_ext.LangmemExtError)
    ] == []
    defined = {
        name
        for name, thing in vars(import_module("langmem_ext.errors")).items()
        if inspect.isclass(thing) and issubclass(thing, Exception)
    }
    assert defined == {error.__name__ for error in errors}


def sources() -> list[Path]:
    return sorted(
        [
            *PACKAGE.rglob("*.py"),
            *(ROOT / "graphs").rglob("*.py"),
            *(ROOT / "benchmarks").rglob("*.py"),
        ]
    )


def test_modules_are_named_for_what_they_hold_and_open_with_it_and_can_be_read() -> None:
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert path.stem not in HOUSE_WORDS, path
        assert len(text.splitlines()) <= LONGEST_MODULE, path
        assert ast.get_docstring(ast.parse(text)), path
