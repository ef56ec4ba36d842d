"""The long versions of the property tests run only where `-m long` asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.markexpr:
        return
    for item in items:
        if "long" in item.keywords and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.skip(reason="long: ask for it with -m long"))
