"""What more than one file of these tests uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postgres.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server of the file's own: its tests may stop and kill it, and leave it running."""
    with Cluster() as made:
        yield made
