"""Promises of database names: a URL never makes a file; passwords are libpq's, never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from langmem_ext import DeltaSaver, InvalidInput, examine, import_checkpoints

SECRET = "hunter"


@pytest.mark.parametrize(
    "name",
    [
        f"host=127.0.0.1 user=root password={SECRET}2 dbname=app",
        "dbname=app",
        " user = root",
        f"postgres:/root:{SECRET}2@localhost/app",
        f"postgresql:/root:{SECRET}2@localhost/app",
        f"postgresql+psycopg://root:{SECRET}2@localhost/app",
        f"mysql://root:{SECRET}2@localhost/app",
    ],
)
def test_a_servers_address_that_is_no_url_of_ours_makes_no_file_and_is_not_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for used in (DeltaSaver.open, examine, lambda url: import_checkpoints(url, "new.db")):
        with pytest.raises(InvalidInput, match="postgresql://") as raised:
            used(name)
        assert SECRET not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    ["sqlite:///new.db?mode=rx", "sqlite:///new.db?shema=x", "sqlite:////tmp/new.db?mode=ro&x=1"],
)
def test_an_option_that_a_file_does_not_have_is_refused_and_makes_none(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="one option"):
        DeltaSaver.open(url)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_an_odd_name_is_opened_by_its_path(tmp_path: Path) -> None:
    odd = str(tmp_path / "old.db?mode=rx")
    DeltaSaver.open(odd).close()
    with DeltaSaver.open(f"sqlite:///{odd}?mode=ro") as saver:
        assert list(saver.list(None)) == []


@pytest.mark.parametrize(
    "name",
    ["memory.db", "a=b.db", "C:/memory.db", "user.db", "host", "folder/dbname=x.db", "port-1.db"],
)
def test_what_is_a_path_stays_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with DeltaSaver.open(name) as saver:
        assert saver.get_tuple({"configurable": {"thread_id": "t"}}) is None
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("wrong", ["a@b", "a/b", "a%zzb", "a%b", "a\0b"])
def test_a_password_that_cannot_be_read_is_not_told(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="postgresql://user@host/name") as raised:
        DeltaSaver.open(f"postgresql://me:{SECRET}{wrong}{SECRET}@host/app")
    shown: BaseException | None = raised.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = None if shown.__suppress_context__ else shown.__context__


def test_a_server_is_no_file_to_be_imported() -> None:
    with pytest.raises(InvalidInput, match="copy_saver") as raised:
        import_checkpoints(f"postgresql://me:{SECRET}@host/app", ":memory:")
    assert SECRET not in str(raised.value)
