"""Cards and tables: their text and HTML, which must say the same."""

import re
import sys
import tomllib
from html.parser import HTMLParser
from importlib.metadata import EntryPoint
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from pygments.token import Token

import metalnb as mnb
from metalnb.display import Card, Listing, Source, Table, cards_html, cards_text, nbytes
from metalnb.display.card_buttons import ACTIONS
from metalnb.display.highlight import highlight
from metalnb.msl.signature import Param, Reflection, Signature, Type

CELL = """\
#include <metal_stdlib>
using namespace metal;
struct Particle { float3 position; float mass; };

/// Move every particle by one step.
/// At length.
kernel void drift(device Particle* particles [[buffer(0)]], constant Particle& sun,
                  device const float3* force [[buffer(2)]], constant float& dt [[buffer(3)]], constant uint2& extent,
                  constant bool& wrap, constant float2x2& turn, device const void* raw, device atomic_uint& count,
                  threadgroup float* scratch [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
    threadgroup float tile[16][16];
    tile[i % 16][0] = dt;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    particles[i].position += force[i] * tile[(i + 1) % 16][0];
}
"""
ENTITY = "kernel void sneaky(device float* x) { if (x[0] < 1 && x[0] > 0) x[0] = 2; } // <script>alert(1)</script>\n"


def kernel(source: str = CELL) -> mnb.Kernel:
    (found,) = mnb.compile(source).kernels.values()
    return found


def parse(html: str) -> ET.Element:
    """Parse strictly: an element that is not closed, or text that is not escaped, is an error."""
    return ET.fromstring(html)  # noqa: S314  (made here)


def cells(html: str) -> list[list[str]]:
    return [["".join(td.itertext()) for td in row] for row in parse(html).iter("tr")]


def test_card_shows_how_each_buffer_is_used() -> None:
    found = kernel("""kernel void sums(device const float* x, device float* y, device float* total, device float* seen,
                  uint i [[thread_position_in_grid]]) { y[i] = x[i] + seen[0]; total[i] += x[i]; }""")
    access = {row[0]: row[3] for row in cells(found._repr_html_())[1:]}
    assert access == {"x": "read", "y": "write", "total": "read, write", "seen": "read"}


def test_the_card_shows_the_python_form_of_each_argument() -> None:
    rows = {row[0]: row[1:] for row in cells(kernel()._repr_html_())}
    assert rows == {
        "argument": ["Metal type", "index", "access", "in Python"],
        "particles": [
            "device Particle*", "[[buffer(0)]]", "read, write",
            'array of drift.program.dtype("Particle"), or left out: returned',
        ],
        "sun": ["constant Particle&", "[[buffer(1)]]", "not used", "dict, dataclass or record: position, mass"],
        "force": ["device const float3*", "[[buffer(2)]]", "read", "float32 array (…, 4)"],
        "dt": ["constant float&", "[[buffer(3)]]", "read", "number"],
        "extent": ["constant uint2&", "[[buffer(4)]]", "not used", "2 numbers"],
        "wrap": ["constant bool&", "[[buffer(5)]]", "not used", "True or False"],
        "turn": ["constant float2x2&", "[[buffer(6)]]", "not used", "2×2 numbers"],
        "raw": ["device const void*", "[[buffer(7)]]", "not used", "any array"],
        "count": ["device uint&", "[[buffer(8)]]", "not used", "uint32 array of one element, or left out: returned"],
        "scratch": [
            "threadgroup float*", "[[threadgroup(0)]]", "shared", "sized by the launch: one float for each thread",
        ],
    }  # fmt: skip


def test_text_and_html_have_the_same_contents() -> None:
    found = kernel()
    bundle = found._repr_mimebundle_()
    text, html = bundle["text/plain"], parse(bundle["text/html"])
    for row in cells(bundle["text/html"])[1:]:
        for part in row:
            assert part in text, part
    shown = "".join(html.itertext())
    for part in ("Move every particle by one step.", "1,024 of 32,768 bytes", "fast math", found.engine.caps.device):
        assert part in text
        assert part in shown
    assert "At length" not in text


def test_a_long_word_may_wrap_and_a_short_cell_does_not() -> None:
    record, name = "PartialDigestOfAThreadgroup", "partial_digests_of_all_threadgroups"
    source = f"""struct {record} {{ uint words[8]; }};
    kernel void k(device {record}* {name}, device const float* x, uint i [[thread_position_in_grid]]) {{
        {name}[i].words[0] = x[i];
    }}"""
    html = kernel(source)._repr_html_()
    named, typed, index, access, given, *second = parse(html).iter("td")
    pieces = [wrapped(cell) for cell in (named, typed, given)]
    assert pieces[0] == ["partial_", "digests_", "of_", "all_", "threadgroups"]
    assert pieces[1] == ["device Partial", "Digest", "Of", "AThreadgroup*"]
    assert pieces[2][:4] == ["array of k.", "program.", "dtype(", '"Partial']
    assert {cell.get("class") for cell in (named, typed, given)} == {"metalnb-long"}
    assert {cell.get("class") for cell in (index, access)} == {None}
    assert cells(html)[2] == ["x", "device const float*", "[[buffer(1)]]", "read", "float32 array"]
    assert {cell.get("class") for cell in second} == {None}


def wrapped(cell: ET.Element) -> list[str]:
    """Return the pieces of a cell between the places where it may wrap."""
    inside = re.sub("</?(td|code)[^>]*>", "", ET.tostring(cell, encoding="unicode"))
    return ["".join(parse(f"<p>{piece}</p>").itertext()) for piece in inside.split("<wbr />")]


def test_the_source_is_folded_away() -> None:
    (details,) = parse(kernel()._repr_html_()).iter("details")
    assert "open" not in details.attrib
    assert "".join(details.itertext()) == f"Metal source, {len(CELL.splitlines())} lines" + CELL.strip()


def test_a_long_source_is_cut() -> None:
    card = Card(Signature("f", "f"), Reflection(()), "cpu", "", "fast", source="int a;\n" * 13_000)
    (details,) = parse(cards_html([card])).iter("details")
    text = "".join(details.itertext())
    assert text.startswith("Metal source, 13,000 lines")
    assert text.endswith("… and 12,500 more lines")
    assert text.count("int a;") == 500


def test_text_of_the_author_is_never_markup() -> None:
    html = kernel(ENTITY)._repr_html_()
    assert "<script>" not in html
    parse(html)
    assert "<b>x</b>" not in Table(("<b>x</b>",), (("<b>x</b>",),), "<b>x</b>").html()
    assert "<b>x</b>" not in Table(("a",), (), empty="<b>x</b>").html()


def test_a_parameter_that_a_constant_removes_is_marked() -> None:
    source = """
    constant bool BIASED [[function_constant(0)]];
    kernel void f(device float* y, device const float* bias [[function_constant(BIASED)]],
                  uint i [[thread_position_in_grid]]) { y[i] = BIASED ? bias[i] : 0; }
    """
    rows = {r[0]: r for r in mnb.compile(source, constants={"BIASED": False}).f.card.parameters()}
    assert rows["bias"][3:] == ("–", "nothing: BIASED is false")
    card = mnb.compile(source, constants={"BIASED": True}).f.card
    assert {r[0]: r[3] for r in card.parameters()}["bias"] == "read"
    assert ("function constants", "BIASED = True") in card.facts


def test_a_program_of_a_few_kernels_is_cards_and_of_many_a_table() -> None:
    def program(count: int) -> mnb.Program:
        kernels = (f"/// Number {i}.\nkernel void k{i}(device float* x) {{ *x = {i}; }}\n" for i in range(count))
        return mnb.compile("".join(kernels))

    few, many = program(3), program(9)
    assert len(list(parse(few._repr_html_()).iter("table"))) == 3
    assert len(list(parse(few._repr_html_()).iter("details"))) == 1
    head, *rows = cells(many._repr_html_())
    assert head == ["kernel", "arguments", ""]
    assert rows == [[f"k{i}", "x", f"Number {i}."] for i in range(9)]
    text = many._repr_mimebundle_()["text/plain"]
    assert text.splitlines()[0].startswith("9 kernels on ")
    assert re.search(r"^k8 +x +Number 8\.$", text, re.MULTILINE)


def test_a_card_shows_an_error_of_the_device_compiler_to_the_caller_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A display leaves out what it cannot learn; the error is raised by the call."""
    found = kernel("kernel void f(device float* x) { threadgroup float t[4]; t[0] = *x; *x = t[0]; }\n// uncompiled\n")

    def refuse(_unit: object) -> None:
        raise mnb.KernelFault("no")

    monkeypatch.setattr(found.engine, "compile", refuse)
    assert "threadgroup memory" not in cards_text([found.card])
    with pytest.raises(mnb.KernelFault):
        _ = found.binary


def test_card_buttons_leave_no_words_when_stripped() -> None:
    """A page that strips styles and buttons shows their remaining content, so their words come from the style."""
    card = kernel().card
    box = next(e for e in parse(cards_html([card])).iter("div") if e.get("class") == "metalnb-acts")
    assert "".join(box.itertext()) == ""
    assert (box.get("data-metalnb-kernel"), box.get("data-metalnb-call")) == (card.signature.name, card.bare_call)
    assert {b.get("aria-label"): b.get("data-metalnb-cell") for b in box} == {label: cell for label, cell, _ in ACTIONS}
    assert ".metalnb .metalnb-acts{display:none}" in cards_html([card])
    for name in ("operator", "f.g"):  # `operator` is a valid name in Python, `f.g` is not
        shown = cards_html([Card(Signature(name, name), Reflection(()), "cpu", "", "fast")])
        assert ('metalnb-acts" data' in shown) == (name == "operator")


def test_a_bare_signature_makes_a_card() -> None:
    card = Card(Signature("nothing", "nothing"), Reflection(()), "cpu", "", "fast")
    assert cards_text([card]) == "kernel nothing\n  call: nothing(grid=1024)\n  runs on cpu · fast math"
    assert cells(cards_html([card])) == []


CALLS = """\
#include <metal_stdlib>
using namespace metal;
kernel void in_place(device float* y, constant float& a, uint i [[thread_position_in_grid]]) { y[i] *= a; }
kernel void made(device float* image, constant float2& c, constant bool& b, constant uint& n,
                 uint2 p [[thread_position_in_grid]], uint2 s [[threads_per_grid]]) {
    image[p.y * s.x + p.x] = b ? c.x : n;
}
kernel void crowd(device const float* x, device atomic_uint* total, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(total, uint(x[i]), memory_order_relaxed);
}
kernel void through(device const float* x, device float* out, threadgroup float* part, constant float3x3& m,
                    uint i [[thread_position_in_grid]]) {
    part[0] = m[0][0];
    out[i] = x[i];
}
kernel void behind(device const float* x, device float* out, constant float& a, device const float* y,
                   uint i [[thread_position_in_grid]]) {
    out[i] = x[i] + a * y[i];
}
kernel void last(constant float& a, device const float* x, device float* y, uint i [[thread_position_in_grid]]) {
    y[i] += a * x[i];
}
kernel void gap(device float* out, device const float* x, uint i [[thread_position_in_grid]]) { out[i] = x[i]; }
"""


def test_the_call_on_a_card_can_be_made() -> None:
    names = {"np": np, "x": np.ones(64, np.float32), "y": np.ones(64, np.float32), "total": np.zeros(1, np.uint32)}
    found = {name: k.card.call for name, k in mnb.compile(CALLS).items()}
    assert found == {
        "in_place": "in_place(y, a=1.0)",
        "made": "image = made(c=(1.0, 1.0), b=True, n=1, grid=(64, 64))",
        "crowd": "crowd(x, total, grid=x.size)",
        "behind": "out = behind(x, a=1.0, y=y)",
        "last": "last(a=1.0, x=x, y=y)",
        "gap": "out = gap(x=x)",
        "through": 'out = through(x, m=np.ones((3, 3)), threadgroup_memory={"part": 1024})',
    }
    for call in found.values():
        exec(call, {**mnb.compile(CALLS), **names})  # noqa: S102  (the card's own code)
    assert names["total"].tolist() == [64]


def test_struct_of_pointers_can_be_passed_as_a_dict() -> None:
    text = """struct S { device float* x; uint n; };
    kernel void k(constant S& s, uint i [[thread_position_in_grid]]) { s.x[i] = s.n; }"""
    kernel = mnb.compile(text).k
    assert kernel.card.parameters()[0][4] == "a dict of x, n; its pointers take mnb.array"
    assert mnb.compile(text, engine="cpu").k.card.parameters()[0][4] == "a dict of x, n; its pointers take mnb.array"
    with pytest.raises(mnb.ArgumentError, match=r"field 'x' is pointer: .* or make the pointer a parameter"):
        kernel({"x": np.zeros(3, np.float32), "n": 3}, grid=3)


def test_an_array_of_vectors_names_every_axis() -> None:
    kind = Type("float4", 64, 16, (4,))
    param = Param("m", 0, 0, "device", kind, const=True)
    card = Card(Signature("f", "f", (param,)), Reflection(()), "cpu", "", "fast")
    assert card.parameters()[0][4] == "float32 array (…, 4, 4)"


def test_a_listing_is_a_dictionary_and_a_table() -> None:
    listing = Listing({"a": 1}, Table(("name", "value"), (("a", "1"),), "caption", code=frozenset({0})))
    assert listing == {"a": 1}
    assert repr(listing) == "caption\nname  value\na     1"
    assert cells(listing._repr_html_()) == [["name", "value"], ["a", "1"]]
    assert repr(Listing({}, Table(("name",), (), empty="none here"))) == "none here"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_400, "99.4 kB"), (99_500, "100 kB"), (999_499, "999 kB"),
     (999_500, "1.0 MB"), (21_222_836, "21.2 MB"), (5 * 10**9, "5.0 GB"), (10**16, "10000 TB")],
)  # fmt: skip
def test_bytes_are_written_short(count: int, text: str) -> None:
    assert nbytes(count) == text


def classes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}

    class Reader(HTMLParser):
        name = ""

        def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.name = dict(attrs)["class"] or ""

        def handle_endtag(self, _tag: str) -> None:
            self.name = ""

        def handle_data(self, data: str) -> None:
            found.setdefault(data.strip(), self.name)

    Reader().feed(highlight(text))
    return found


def test_msl_words_are_keywords_and_its_types_are_types() -> None:
    found = classes(CELL + "half4x4 m; packed_float3 p; bfloat b; float4 f() {} // remark\n")
    assert {found[w] for w in ("kernel", "device", "constant", "threadgroup", "struct", "using", "const")} == {"k"}
    assert {found[w] for w in ("float3", "float2x2", "half4x4", "packed_float3", "bfloat", "atomic_uint")} == {"t"}
    assert found["16"] == "m"
    assert found["// remark"] == "c"
    assert classes("particles") == {"particles": ""}


@pytest.mark.parametrize("text", [CELL, ENTITY, "", "\n\n", "\t<&>\"'", 'unfinished " string\n/* and comment'])
def test_highlighting_changes_no_character(text: str) -> None:
    assert "".join(parse(f"<pre>{highlight(text)}</pre>").itertext()) == text


def test_the_lexer_is_a_plugin_that_pygments_takes_for_metal_files() -> None:
    root = Path(__file__).resolve().parents[2]
    declared = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["pygments.lexers"]
    lexer = EntryPoint("metal", declared["metal"], "pygments.lexers").load()
    assert lexer.aliases == ["metal"]
    assert lexer.filenames == ["*.metal"]
    assert lexer.analyze_text(CELL) == 0.5
    assert lexer.analyze_text("#include <vector>") == 0
    assert (Token.Keyword, "kernel") in lexer().get_tokens("kernel void k() {} // device\n")
    assert (Token.Comment.Single, "// device\n") in lexer().get_tokens("kernel void k() {} // device\n")


def test_without_pygments_the_text_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygments.lexers.c_cpp", None)
    monkeypatch.delitem(sys.modules, "metalnb.metal_lexer", raising=False)
    assert highlight("a < b") == "a &lt; b"


def test_source_is_text_and_highlighted_in_a_notebook() -> None:
    source = Source("kernel void f() {}")
    assert source == "kernel void f() {}"
    assert repr(source) == "kernel void f() {}"
    assert '<span class="k">kernel</span>' in source._repr_html_()
