"""Compare the library's ops in this tree with those in another tree, such as an earlier commit's.

Run: git worktree add /tmp/before COMMIT; python benchmarks/against.py /tmp/before [--runs N] [--size N] [OP …]

Each tree runs in its own process with its own cache, and the process lives for the entire run. Each op is measured in
both alternately (A B A B …), on the same values. The figure is the other tree's median time divided by this tree's, so
above 1 means that this tree is faster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from report import Row, machine, median, show

HERE = Path(__file__).resolve().parent.parent

# `library` is the tree's own benchmark, which knows where that tree keeps its samples.
WORKER = """
import sys, json, time, warnings
warnings.simplefilter("ignore")
import numpy as np, library, metalnb as mnb
bench_of = getattr(library, "bench_of", lambda op: op.row.bench)  # where older trees have it
call = None

# Cases that the ops' samples lack: an axis, strides, shapes of products.
def floats(rng, *shape, kind=np.float32):
    return mnb.asarray(rng.random(shape, np.float32).astype(kind), copy=True)
def plane(rng, n):
    return floats(rng, int(n**0.5), int(n**0.5))
def over(f, *made):
    return lambda rng, n: (lambda f=f, given=[m(rng, n) for m in made]: f(*given))
def vector(rng, n):
    return floats(rng, int(n**0.5))
def halves(rng, n):
    return floats(rng, int(n**0.5), int(n**0.5), kind=np.float16)
CASES = {
    "sum axis 0": over(lambda x: mnb.sum(x, axis=0), plane),
    "sum axis 1": over(lambda x: mnb.sum(x, axis=1), plane),
    "argmax axis 0": over(lambda x: mnb.argmax(x, axis=0), plane),
    "transpose copy": over(lambda x: mnb.asarray(x.T, copy=True), plane),
    "add of columns": over(lambda x: mnb.add(x[:, ::2], x[:, 1::2]), plane),
    "add of a row": over(lambda x, r: mnb.add(x, r), plane, vector),
    "matrix times vector": over(lambda x, v: mnb.matmul(x, v), plane, vector),
    "vector times matrix": over(lambda x, v: mnb.matmul(v, x), plane, vector),
    "half matmul": over(lambda x: mnb.matmul(x, x), halves),
}
for line in sys.stdin:
    asked = json.loads(line)
    if "op" in asked:
        made = CASES.get(asked["op"])
        op = library.table.ops().get(asked["op"])
        bench = op and bench_of(op)
        call, answer = None, None
        if bench:
            sample = bench(np.random.default_rng(asked["seed"]), asked["n"])
            own = lambda v: mnb.asarray(v, copy=True)
            args = [library.mapped(a, own) for a in sample.args]
            options = {k: library.mapped(v, own) for k, v in sample.options.items()}
            def call(op=op, args=args, options=options):
                kept = op(*args, **options)
                mnb.synchronize()
        if made:
            run = made(np.random.default_rng(asked["seed"]), asked["n"])
            def call(run=run):
                kept = run()
                mnb.synchronize()
        if call:
            call(); call()
            answer = True
    elif "list" in asked:
        answer = [op.name for op in library.table.ops().values() if bench_of(op)] + [*CASES]
    else:
        start = time.perf_counter()
        for _ in range(asked["times"]):
            call()
        answer = (time.perf_counter() - start) / asked["times"]
    print(json.dumps(answer), flush=True)
"""


class Tree:
    """A process that measures the ops of one tree."""

    def __init__(self, tree: Path, cache: str) -> None:
        path = os.pathsep.join([str(tree), str(tree / "benchmarks")])
        environment = {**os.environ, "PYTHONPATH": path, "METALNB_CACHE": cache}
        command = [sys.executable, "-c", WORKER]
        self._process = subprocess.Popen(
            command, env=environment, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: object) -> object:
        """Send a request to the process; return its answer."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def ratio(ours: Tree, theirs: Tree, op: str, runs: int, n: int) -> float:
    """Return an op's time in the other tree over its time in this one; NaN where one of them has no such op."""
    if not all(tree.ask(op=op, n=n, seed=1) for tree in (ours, theirs)):
        return math.nan
    once = max(float(str(ours.ask(times=1))), 1e-5)
    times = max(1, int(0.02 / once))
    mine, other = [], []
    for _ in range(max(3, min(runs, int(runs / once)))):
        mine.append(float(str(ours.ask(times=times))))
        other.append(float(str(theirs.ask(times=times))))
    return median(other) / median(mine)


def main() -> int:
    """Measure all ops that both trees have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path, help="the other tree, a checkout of the commit to compare with")
    parser.add_argument("ops", nargs="*", metavar="OP", help="only these ops")
    parser.add_argument("--runs", type=int, default=7, help="timed runs of each (default 7)")
    parser.add_argument("--size", type=int, default=1 << 22, help="elements (default 2^22)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        ours, theirs = Tree(HERE, f"{cache}/here"), Tree(options.tree.resolve(), f"{cache}/there")
        print(f"{options.tree}'s time over ours: {options.size:,} elements, medians of {options.runs} runs")
        print(machine(), end="\n\n")
        ratios = {}
        for op in options.ops or ours.ask(list=True):
            value = ratio(ours, theirs, op, options.runs, options.size)
            if not math.isnan(value):
                ratios[op] = value
                print(f"{op:<24} {value:.2f}", flush=True)
        ours.close()
        theirs.close()
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    slow = ", ".join(f"{op} {value:.2f}" for op, value in sorted(ratios.items(), key=lambda p: p[1]) if value < 0.9)
    note = f"{len(ratios)} ops; below 0.9: {slow or 'none'}"
    row = Row("geometric mean", f"{mean:.3f}", ">= 0.97", mean >= 0.97, note)
    return show("the library against another tree", [row])


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
