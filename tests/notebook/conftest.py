"""IPython with metalnb's extension, for one test at a time."""

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import metalnb as mnb


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.extension_manager.load_extension("metalnb")
    yield shell
    InteractiveShell.clear_instance()
    mnb.use(None)
