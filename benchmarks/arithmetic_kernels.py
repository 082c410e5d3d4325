"""Kernels as long as cryptography needs: products in large fields, point addition on curves, and unrolled hashes.

Each has its source and a reference that computes the same with Python's integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["FIELDS", "Field", "Long", "butterfly", "keccak", "point_sum", "products", "sha256"]

HEADERS = "#include <metal_stdlib>\nusing namespace metal;\n"
WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Field:
    """A prime field whose elements are rows of 32-bit words, in Montgomery form.

    Attributes
    ----------
    words : int
    prime : int
    """

    words: int
    prime: int

    @property
    def radix(self) -> int:
        """The Montgomery radix, by which each product is divided."""
        return 1 << 32 * self.words

    def product(self, a: int, b: int) -> int:
        """Return a Montgomery product."""
        return a * b * pow(self.radix, -1, self.prime) % self.prime

    def elements(self, count: int, rng: np.random.Generator) -> list[int]:
        """Return random elements."""
        return [int.from_bytes(rng.bytes(4 * self.words), "little") % self.prime for _ in range(count)]

    def packed(self, values: list[int]) -> np.ndarray:
        """Return elements as a kernel reads them: one row of words each, least significant word first."""
        data = b"".join(value.to_bytes(4 * self.words, "little") for value in values)
        return np.frombuffer(data, "<u4").reshape(-1, self.words).copy()


# The base fields of the curves BN254 and BLS12-381.
FIELDS = (
    Field(8, 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47),
    Field(12, 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB),
)


@dataclass(frozen=True, slots=True)
class Long:
    """A kernel ``k(device const uint* x, device uint* y)`` with one thread per row of words.

    Attributes
    ----------
    name, text : str
    inputs : callable
        Makes the rows of words from a random generator.
    outputs : callable
        Computes the rows that the kernel must write from those rows.
    """

    name: str
    text: str
    inputs: Callable[[np.random.Generator], np.ndarray]
    outputs: Callable[[np.ndarray], np.ndarray]


ROWS = 5


def products(field: Field, count: int, *, form: str = "loops", inlined: bool = True) -> Long:
    """Write a kernel of `count` Montgomery products, each of the previous two results.

    Parameters
    ----------
    field : Field
    count : int
    form : {"loops", "written"}
        Whether a product is two nested loops, or one line for each step.
    inlined : bool
        Whether the source marks the product as always inlined or as never inlined.
    """
    steps = "".join(f"  F c{k} = product(c{k - 2}, c{k - 1});\n" for k in range(2, count + 2))
    text = _arithmetic(field, form, inlined) + _kernel(field, 2, f"F c0 = at(x, 0), c1 = at(x, 1);\n{steps}",
                                                       [f"c{count + 1}"])  # fmt: skip

    def outputs(a: int, b: int) -> tuple[int, ...]:
        for _ in range(count):
            a, b = b, field.product(a, b)
        return (b,)

    kind = "inlined" if inlined else "not inlined"
    return _over(field, f"{count} products, {form}, {kind}", text, 2, outputs)


def point_sum(field: Field, count: int, form: str = "loops") -> Long:
    """Write a kernel that adds one point to another `count` times: Jacobian coordinates, 16 products per sum."""
    lines = []
    for k in range(count):
        last = ("x2", "y2", "z2") if k == 0 else (f"x3_{k - 1}", f"y3_{k - 1}", f"z3_{k - 1}")
        names = dict(zip(("x2", "y2", "z2"), last, strict=True))
        for to, how, a, b in _SUM:
            left, right = (names.get(v, v if v in _INPUT_NAMES else f"{v}_{k}") for v in (a, b))
            lines.append(f"  F {to}_{k} = {how}({left}, {right});\n")
    inputs = "".join(f"F {name} = at(x, {i});\n" for i, name in enumerate(_INPUT_NAMES))
    text = _arithmetic(field, form, inlined=True) + _kernel(
        field, 6, inputs + "".join(lines), [f"{v}_{count - 1}" for v in ("x3", "y3", "z3")]
    )
    means = {"product": field.product, "sum": lambda a, b: (a + b) % field.prime,
             "difference": lambda a, b: (a - b) % field.prime}  # fmt: skip

    def outputs(*values: int) -> tuple[int, ...]:
        values_by_name = dict(zip(_INPUT_NAMES, values, strict=True))
        for _ in range(count):
            for to, how, a, b in _SUM:
                values_by_name[to] = means[how](values_by_name[a], values_by_name[b])
            values_by_name |= {"x2": values_by_name["x3"], "y2": values_by_name["y3"], "z2": values_by_name["z3"]}
        return values_by_name["x3"], values_by_name["y3"], values_by_name["z3"]

    return _over(field, f"{count} point sums, {form}", text, 6, outputs)


_INPUT_NAMES = ("x1", "y1", "z1", "x2", "y2", "z2")
# add-2007-bl from the Explicit-Formulas Database, with each square computed as a product
_SUM = tuple(tuple(line.split()) for line in """
    zz1 product z1 z1\n zz2 product z2 z2\n u1 product x1 zz2\n u2 product x2 zz1\n p1 product z2 zz2
    s1 product y1 p1\n p2 product z1 zz1\n s2 product y2 p2\n h difference u2 u1\n hh sum h h\n i product hh hh
    j product h i\n d difference s2 s1\n r sum d d\n v product u1 i\n rr product r r\n vv sum v v
    e difference rr j\n x3 difference e vv\n f difference v x3\n g product r f\n q product s1 j\n qq sum q q
    y3 difference g qq\n w sum z1 z2\n ww product w w\n w1 difference ww zz1\n w2 difference w1 zz2\n z3 product w2 h
""".strip().splitlines())  # fmt: skip


def butterfly(field: Field, size: int, form: str = "loops") -> Long:
    """Write a kernel of one complete transform of `size` elements over a field, with a twiddle factor for each pair."""
    stages = list(_stages(size))
    twiddle = [pow(3, k, field.prime) for k in range(len(stages))]
    words = [w for value in twiddle for w in _words(value, field.words)]
    table = f"constant uint twiddles[{len(words)}] = {{{', '.join(f'{w:#x}u' for w in words)}}};\n"
    lines = ["".join(f"F v{i} = at(x, {i});\n" for i in range(size))]
    for k, (i, j) in enumerate(stages):
        lines.append(f"  {{ F w; for (int n = 0; n < {field.words}; ++n) w.v[n] = twiddles[{k * field.words} + n];\n"
                     f"    F p = product(v{j}, w); v{j} = difference(v{i}, p); v{i} = sum(v{i}, p); }}\n")  # fmt: skip
    text = _arithmetic(field, form, inlined=True) + table + _kernel(
        field, size, "".join(lines), [f"v{i}" for i in range(size)]
    )

    def outputs(*values: int) -> tuple[int, ...]:
        v = list(values)
        for (i, j), w in zip(stages, twiddle, strict=True):
            p = field.product(v[j], w)
            v[i], v[j] = (v[i] + p) % field.prime, (v[i] - p) % field.prime
        return tuple(v)

    return _over(field, f"transform of {size}, {form}", text, size, outputs)


def _stages(size: int) -> Iterator[tuple[int, int]]:
    half = size // 2
    while half:
        yield from ((i, i + half) for i in range(size) if not i & half)
        half //= 2


def _over(
    field: Field, name: str, text: str, count: int, outputs: Callable[..., tuple[int, ...]],
) -> Long:  # fmt: skip
    size = field.words

    def inputs(rng: np.random.Generator) -> np.ndarray:
        return field.packed(field.elements(ROWS * count, rng)).reshape(ROWS, -1)

    def expected(rows: np.ndarray) -> np.ndarray:
        results = []
        for row in rows:
            values = [int.from_bytes(row[i * size : (i + 1) * size].tobytes(), "little") for i in range(count)]
            results.append(field.packed(list(outputs(*values))).reshape(-1))
        return np.array(results)

    return Long(f"{32 * size} bits: {name}", text, inputs, expected)


def _words(value: int, count: int) -> list[int]:
    return [value >> 32 * i & WORD - 1 for i in range(count)]


def _kernel(field: Field, count: int, body: str, results: list[str]) -> str:
    n = field.words
    writes = "".join(
        f"  for (int n = 0; n < {n}; ++n) y[(i * {len(results)} + {k}) * {n} + n] = {name}.v[n];\n"
        for k, name in enumerate(results)
    )
    return (
        f"inline F at(device const uint* x, uint k) {{ F a; for (int n = 0; n < {n}; ++n) a.v[n] = x[k * {n} + n]; "
        "return a; }\n"
        "kernel void k(device const uint* x, device uint* y, uint i [[thread_position_in_grid]]) {\n"
        f"  x += i * {count * n};\n  {body}{writes}}}\n"
    )


def _arithmetic(field: Field, form: str, inlined: bool) -> str:
    """Write a field's type and its product, sum and difference functions."""
    n, words = field.words, ", ".join(f"{w:#x}u" for w in _words(field.prime, field.words))
    inverse = -pow(field.prime, -1, WORD) % WORD
    attribute = "__attribute__((always_inline)) inline" if inlined else "__attribute__((noinline))"
    body = _LOOPS if form == "loops" else _written(field)
    return (
        f"{HEADERS}struct F {{ uint v[{n}]; }};\nconstant uint P[{n}] = {{{words}}};\n"
        f"constant uint INVERSE = {inverse:#x}u;\n{_REDUCED.replace('WORDS', str(n))}"
        f"{attribute} F product(F a, F b) {{\n{body.replace('WORDS', str(n))}}}\n"
    )


_REDUCED = """
inline F reduced(F a) {
  F r; long c = 0;
  for (int i = 0; i < WORDS; ++i) { c += (long)a.v[i] - (long)P[i]; r.v[i] = (uint)c; c >>= 32; }
  for (int i = 0; i < WORDS; ++i) r.v[i] = c < 0 ? a.v[i] : r.v[i];
  return r;
}
inline F sum(F a, F b) {
  F r; ulong c = 0;
  for (int i = 0; i < WORDS; ++i) { c += (ulong)a.v[i] + b.v[i]; r.v[i] = (uint)c; c >>= 32; }
  return reduced(r);
}
inline F difference(F a, F b) {
  F r; long c = 0;
  for (int i = 0; i < WORDS; ++i) { c += (long)a.v[i] - (long)b.v[i]; r.v[i] = (uint)c; c >>= 32; }
  ulong d = 0; uint mask = c < 0 ? 0xffffffffu : 0u;
  for (int i = 0; i < WORDS; ++i) { d += (ulong)r.v[i] + (P[i] & mask); r.v[i] = (uint)d; d >>= 32; }
  return r;
}
"""
_LOOPS = """  uint t[WORDS + 2] = {0};
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    ulong c = 0;
#pragma unroll
    for (int j = 0; j < WORDS; ++j) { c += (ulong)a.v[j] * b.v[i] + t[j]; t[j] = (uint)c; c >>= 32; }
    c += t[WORDS]; t[WORDS] = (uint)c; t[WORDS + 1] = (uint)(c >> 32);
    uint m = t[0] * INVERSE;
    c = ((ulong)m * P[0] + t[0]) >> 32;
#pragma unroll
    for (int j = 1; j < WORDS; ++j) { c += (ulong)m * P[j] + t[j]; t[j - 1] = (uint)c; c >>= 32; }
    c += t[WORDS]; t[WORDS - 1] = (uint)c; t[WORDS] = t[WORDS + 1] + (uint)(c >> 32);
  }
  F r;
  for (int i = 0; i < WORDS; ++i) r.v[i] = t[i];
  return reduced(r);
"""


def _written(field: Field) -> str:
    """Write a product as code generators do: no loop, no 64-bit number, carries found by comparison."""
    n, prime = field.words, _words(field.prime, field.words)
    lines = ["uint l, h, m, c;", *(f"uint t{j} = 0;" for j in range(n + 2))]

    def step(factor: str, other: str, t: int, to: int) -> None:
        lines.extend([
            f"l = {factor} * {other}; h = mulhi({factor}, {other});",
            f"l += t{t}; h += l < t{t} ? 1u : 0u;",
            "l += c; h += l < c ? 1u : 0u;",
            f"t{to} = l; c = h;",
        ])  # fmt: skip

    for i in range(n):
        lines.append("c = 0;")
        for j in range(n):
            step(f"a.v[{j}]", f"b.v[{i}]", j, j)
        lines.append(f"t{n} += c; t{n + 1} = t{n} < c ? 1u : 0u;")
        lines.append("m = t0 * INVERSE; c = 0;")
        lines.append(f"l = m * {prime[0]:#x}u; h = mulhi(m, {prime[0]:#x}u); l += t0; h += l < t0 ? 1u : 0u; c = h;")
        for j in range(1, n):
            step("m", f"{prime[j]:#x}u", j, j - 1)
        lines.append(f"t{n - 1} = t{n} + c; t{n} = t{n + 1} + (t{n - 1} < c ? 1u : 0u);")
    lines.append("F r;")
    lines += [f"r.v[{i}] = t{i};" for i in range(n)]
    lines.append("return reduced(r);")
    return "".join(f"  {line}\n" for line in lines)


def sha256(blocks: int) -> Long:
    """Write SHA-256 of `blocks` blocks, with at least one line for each step of each of the 64 rounds."""
    constants, start = _sha_constants()
    lines = [f"uint h{k} = {value:#x}u;" for k, value in enumerate(start)]
    for block in range(blocks):
        lines += [f"{'uint ' if not block else ''}w{i} = x[{16 * block + i}];" for i in range(16)]
        lines += [f"{'uint ' if not block else ''}{v} = h{k};" for k, v in enumerate("abcdefgh")]
        if not block:
            lines.append("uint t, u;")
        for r in range(64):
            a, b, c, d, e, f, g, h = ("abcdefgh"[(k - r) % 8] for k in range(8))
            if r > 15:
                w, w1, w9, w14 = (f"w{(r + k) % 16}" for k in (0, 1, 9, 14))
                lines += [
                    f"t = rotate({w1}, 25u) ^ rotate({w1}, 14u) ^ ({w1} >> 3);",
                    f"u = rotate({w14}, 15u) ^ rotate({w14}, 13u) ^ ({w14} >> 10);",
                    f"{w} = {w} + t + {w9} + u;",
                ]
            lines += [
                f"t = {h} + (rotate({e}, 26u) ^ rotate({e}, 21u) ^ rotate({e}, 7u))",
                f"    + (({e} & {f}) ^ (~{e} & {g})) + {constants[r]:#x}u + w{r % 16};",
                f"u = (rotate({a}, 30u) ^ rotate({a}, 19u) ^ rotate({a}, 10u))",
                f"    + (({a} & {b}) ^ ({a} & {c}) ^ ({b} & {c}));",
                f"{d} += t;",
                f"{h} = t + u;",
            ]
        lines += [f"h{k} += {v};" for k, v in enumerate("abcdefgh")]
    lines += [f"y[i * 8 + {k}] = h{k};" for k in range(8)]
    text = _hash(16 * blocks, lines)

    def outputs(rows: np.ndarray) -> np.ndarray:
        results = []
        for row in rows:  # the last block holds the padding of the others
            digest = hashlib.sha256(row[: 16 * (blocks - 1)].astype(">u4").tobytes()).digest()
            results.append(np.frombuffer(digest, ">u4").astype(np.uint32))
        return np.array(results)

    def inputs(rng: np.random.Generator) -> np.ndarray:
        rows = rng.integers(0, WORD, (ROWS, 16 * blocks), np.uint32)
        rows[:, 16 * (blocks - 1) :] = 0
        rows[:, 16 * (blocks - 1)] = 0x80000000
        rows[:, -1] = 512 * (blocks - 1)
        return rows

    return Long(f"SHA-256 of {blocks} blocks", text, inputs, outputs)


def _sha_constants() -> tuple[list[int], list[int]]:
    """Return the first 32 fraction bits of the first 64 primes' cube roots and of the first 8 primes' square roots."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
    return [_root(p << 96, 3) % WORD for p in primes[:64]], [_root(p << 64, 2) % WORD for p in primes[:8]]


def _root(value: int, degree: int) -> int:
    low, high = 0, 1 << value.bit_length()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle)
    return low


def keccak(times: int) -> Long:
    """Write SHA3-256 of 128 bytes, one block with its padding; the permutation is applied `times` times, unrolled."""
    lines = [f"ulong s{k} = (ulong)x[{2 * k}] | (ulong)x[{2 * k + 1}] << 32;" for k in range(17)]
    lines += [f"ulong s{k} = 0;" for k in range(17, 25)]
    lines += ["ulong c0, c1, c2, c3, c4, t, u;"]
    offsets, order = _keccak_path()
    for _ in range(times):
        for constant in _keccak_constants():
            lines += [f"c{i} = s{i} ^ s{i + 5} ^ s{i + 10} ^ s{i + 15} ^ s{i + 20};" for i in range(5)]
            for i in range(5):
                lines.append(f"t = c{(i + 4) % 5} ^ rotate(c{(i + 1) % 5}, 1ul);")
                lines += [f"s{i + j} ^= t;" for j in range(0, 25, 5)]
            lines.append("t = s1;")
            for to, by in zip(order, offsets, strict=True):
                lines.append(f"u = s{to}; s{to} = rotate(t, {by}ul); t = u;")
            for j in range(0, 25, 5):
                lines += [f"c{i} = s{i + j};" for i in range(5)]
                lines += [f"s{i + j} = c{i} ^ (~c{(i + 1) % 5} & c{(i + 2) % 5});" for i in range(5)]
            lines.append(f"s0 ^= {constant:#x}ul;")
    lines += [f"y[i * 8 + {2 * k}] = (uint)s{k}; y[i * 8 + {2 * k + 1}] = (uint)(s{k} >> 32);" for k in range(4)]

    def inputs(rng: np.random.Generator) -> np.ndarray:
        rows = rng.integers(0, WORD, (ROWS, 34), np.uint32)
        rows[:, 32], rows[:, 33] = 6, 1 << 31  # pads 128 bytes to 136
        return rows

    def outputs(rows: np.ndarray) -> np.ndarray:
        digests = (hashlib.sha3_256(row[:32].astype("<u4").tobytes()).digest() for row in rows)
        return np.array([np.frombuffer(d, "<u4") for d in digests])

    return Long(f"Keccak, {times} times unrolled", _hash(34, lines), inputs, outputs)


def _keccak_path() -> tuple[list[int], list[int]]:
    """Return each word's rotation and destination, along the path that starts at word (1, 0)."""
    x, y, offsets, order = 1, 0, [], []
    for t in range(24):
        offsets.append((t + 1) * (t + 2) // 2 % 64)
        x, y = y, (2 * x + 3 * y) % 5
        order.append(x + 5 * y)
    return offsets, order


def _keccak_constants() -> Iterator[int]:
    state = 1
    for _ in range(24):
        constant = 0
        for j in range(7):
            constant |= (state & 1) << (1 << j) - 1
            state = (state << 1) ^ (0x171 if state >> 7 else 0)
        yield constant


def _hash(count: int, lines: list[str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return (
        f"{HEADERS}kernel void k(device const uint* x, device uint* y, uint i [[thread_position_in_grid]]) {{\n"
        f"  x += i * {count};\n{body}}}\n"
    )
