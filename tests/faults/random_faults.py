"""Random kernels with random faults, one after the other in one process: it lives, and no array around is touched.

Run: PYTHONPATH=tests:tests/engines python tests/faults/random_faults.py [--count N] [--seed N] [--kernels N]

A kernel is a few bodies of `test_robust`, wrong and right ones, in turn; it is called with many values of the index
that they use, most of them beyond an end. Each array lies between margins that must stay as they were.
"""

from __future__ import annotations

import argparse
import random
import time

from test_robust import EXTENT, FAULTS, HEAD, MARGIN, RIGHT, arguments

import metalnb as mnb


def bodies() -> list[str]:
    """Return what kernels are made of: what has no barrier, which some of the threads might not reach."""
    every = [*(fault.body for fault in FAULTS.values()), *RIGHT.values()]
    return [body for body in every if "barrier" not in body and "return" not in body.replace("return b[j]", "")]


def index(rng: random.Random) -> int:
    """Return an index: near an end, far away, or right."""
    near = rng.choice([0, EXTENT, 32, 8, -1, 2**31 - 1, -(2**31), 2**24, 2**30])
    return max(-(2**31), min(2**31 - 1, near + rng.randint(-3, 3)))


def run(count: int, kernels: int, seed: int) -> int:
    """Make these calls; return how many of them were wrong.

    Raises
    ------
    AssertionError
        For a kernel that touched what it was not given, with its number and text.
    """
    faults = 0
    for number in range(kernels):
        rng = random.Random(f"{seed} {number}")
        chosen = rng.sample(bodies(), 3)
        text = HEAD + "\n".join(f"{{ {body} }}" for body in chosen) + "\n}"
        kernel = mnb.compile(text, engine="cpu", checked=True).f
        for _ in range(count // kernels):
            given, around = arguments()
            given["s"] = given["s"].view(kernel.program.dtype("Pair"))[:, 0]
            memory = {"t": 32 * 4}
            try:
                kernel(*given.values(), index(rng), grid=EXTENT, threadgroup=32, threadgroup_memory=memory, timeout=2)
            except mnb.KernelFault:
                faults += 1
            for name, (whole, before) in around.items():
                before[MARGIN : MARGIN + EXTENT] = whole[MARGIN : MARGIN + EXTENT]
                beside = f"seed {seed}, kernel {number}: {name} has been written beside:\n{text}"
                assert whole.tobytes() == before.tobytes(), beside
    return faults


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="calls in all")
    parser.add_argument("--kernels", type=int, default=400, help="kernels that they are spread over")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    faults = run(options.count, options.kernels, options.seed)
    took = time.monotonic() - began
    print(f"{options.count} calls of {options.kernels} kernels, {faults} faults, {took:.0f} s: alive")


if __name__ == "__main__":
    main()
