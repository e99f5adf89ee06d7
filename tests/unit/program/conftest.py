"""Programs are compiled here as for users: the code itself is what is tested."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def as_shipped(compiled_as_shipped):
    """In every module of this folder."""
