"""A browser, where there is one."""

import pytest

from tests.browser import CHROMIUM


@pytest.fixture(scope="package")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
