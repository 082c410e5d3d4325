"""Endless loops in a notebook's kernel, stopped as its Stop button does, by a request of Jupyter's protocol."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from faults.endless_loops import HEAD, LOOPS

manager = pytest.importorskip("jupyter_client.manager")
pytest.importorskip("ipykernel")

ALL = f"""
import numpy as np
import metalnb as mnb
HEAD, LOOPS = {HEAD!r}, {LOOPS!r}
def start(loop):
    kernel = mnb.compile(HEAD + LOOPS[loop] + "\\n}}", engine="cpu").forever
    x = np.zeros(256, np.float32), np.zeros(1, np.uint32)
    ticket = kernel.prepare(*x, 0, 1 << 24, grid=256, threadgroup=64).launch()
    print("started", flush=True)
    ticket.wait()
"""
NEXT = """
plus = mnb.compile("kernel void plus(device float* x, uint i [[thread_position_in_grid]]) { x[i] += i; }").plus
y = np.zeros(100, np.float32)
plus(y)
assert y.tolist() == list(range(100))
"""


class Session:
    """A Jupyter kernel and its client."""

    def __init__(self) -> None:
        self.manager, self.client = manager.start_new_kernel(kernel_name="python3")
        self.run(ALL)

    def send(self, code: str) -> str:
        request: str = self.client.execute(code, stop_on_error=False)  # else the kernel may drop the next cell
        return request

    def printed(self, request: str, text: str) -> None:
        """Wait until a cell prints something."""
        while True:
            message = self.client.get_iopub_msg(timeout=300)
            content = message["content"]
            if message["parent_header"].get("msg_id") == request:
                assert message["msg_type"] != "error", content
                if message["msg_type"] == "stream" and text in content["text"]:
                    return

    def reply(self, request: str) -> dict[str, Any]:
        while True:
            message = self.client.get_shell_msg(timeout=300)
            if message["parent_header"].get("msg_id") == request:
                content: dict[str, Any] = message["content"]
                return content

    def run(self, code: str) -> None:
        content = self.reply(self.send(code))
        assert content["status"] == "ok", content


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    one = Session()
    yield one
    one.client.stop_channels()
    one.manager.shutdown_kernel(now=True)


@pytest.mark.long(every=4)  # As in test_stop: the same check stops each form of loop
@pytest.mark.parametrize("loop", LOOPS)
def test_stop_ends_a_cell_and_the_next_is_right(session: Session, loop: str) -> None:
    request = session.send(f"start({loop!r})")
    session.printed(request, "started")
    time.sleep(0.2)
    session.manager.interrupt_kernel()
    content = session.reply(request)
    assert (content["status"], content.get("ename")) == ("error", "KeyboardInterrupt")
    session.run(NEXT)
