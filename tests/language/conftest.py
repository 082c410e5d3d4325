"""IPython with metalnb's extension, for all tests of a module."""

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.extension_manager.load_extension("metalnb")
    yield shell
    shell.extension_manager.unload_extension("metalnb")
    InteractiveShell.clear_instance()
