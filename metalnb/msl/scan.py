"""Read a cell's tokens, and edit what only Apple's compiler can parse into what clang can.

What is edited (every edit is recorded, so that diagnostics lead back to the author's text):

===========================================  ====================================================
``[[buffer(0)]]``                            ``[[$attribute("buffer", 0)]]``: an annotation for `reflect`
``template [[host_name("x")]] [[kernel]] …`` the attributes go (clang takes none there), the name is kept
``constant int N [[function_constant(0)]];`` ``… [[$attribute(…)]] $initial(N);``
``threadgroup T tile[N];``                   ``threadgroup T (&tile)[N] = $threadgroup_storage<…>();``
``T get() const device``                     ``T get() const __global``
``T(float x) device : …``                    ``T($nothing<…>, float x) : …``, where ``T(float x)`` is there too
``v.x += a``, in a template                  ``v.x = v.x + (a)``
``1.0``, ``1.0bf``                           ``1.0f``, ``bfloat(1.0f)``
``print("text")``                            ``print("text"_metalnb_text)``
``template <void (*f)(int)>``                ``template <void (&f)(int)>``
``using F = void (*)(int);``                 ``using F = void (&)(int);``
``template <class T> f(thread T& a, T b)``   ``… thread typename $thread_type<T>::type& a …``
``i < n ? x[i] : float4(0)``                 ``i < n ? $either()->* x[i] : $either()->* float4(0)``
``[[bogus]]``, ``#include "/etc/passwd"``    an error, unless ``#if 0`` hides it
===========================================  ====================================================
"""

from __future__ import annotations

import difflib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from metalnb.errors import CompileError, Diagnostic

from .attributes import ATTRIBUTES, MEANT, STANDARD
from .compound import compound_assignments
from .conditional import conditionals, preprocessed
from .constructors import constructors
from .deduction import thread_parameters
from .edits import Edit, EditedText
from .includes import INCLUDE, read_includes
from .lanes import names_lanes
from .literals import literals, pastes, texts
from .members import overloads
from .storage import body, function_aliases, function_parameters, storage, threadgroup_words
from .tokens import Directive, Token, close, tokenize

__all__ = ["INCLUDE", "MAIN", "Cell", "Instantiation", "instantiations", "scan"]

# The file that a cell is to the compiler, whatever its author calls it.
MAIN = "cell"


@dataclass(frozen=True, slots=True)
class Instantiation:
    """``template [[host_name("x")]] [[kernel]] decltype(f<T>) f<T>;``: ``f<T>`` is bound as ``x``."""

    name: str
    function: str
    line: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A scanned text.

    Attributes
    ----------
    name : str
        "cell", or the name of a header cell.
    edited : EditedText
    instantiations : tuple of Instantiation
    expands : bool
        True when a macro makes instantiations, so that only the preprocessor can tell which there are.
    includes : tuple of str
        The header cells it includes.
    optional : frozenset of str
        The function constants that it asks ``is_function_constant_defined`` of.
    simd : bool
        True when it speaks of SIMD- or quad-groups, so that the lanes of a threadgroup can be told apart.
    bare : str
        The author's text without the ``#include`` of MSL's headers: for the preprocessor alone.
    refused : mapping of str to Diagnostic
        What must not be compiled, by the name that stands for it in the edited text: only the preprocessor can tell
        whether the text is skipped.
    """

    name: str
    edited: EditedText
    instantiations: tuple[Instantiation, ...]
    expands: bool
    includes: tuple[str, ...]
    optional: frozenset[str]
    simd: bool
    bare: str = ""
    refused: Mapping[str, Diagnostic] = field(default_factory=dict)

    def diagnostic(self, line: int, column: int, message: str, hint: str = "", severity: str = "error") -> Diagnostic:
        """Word a finding at a place of the edited text (from 1, the column in bytes of UTF-8)."""
        edited, original = self.edited.text.split("\n"), self.edited.original
        line = max(1, min(line, original.count("\n") + 1))
        written = edited[line - 1] if line <= len(edited) else ""
        character = len(written.encode()[: column - 1].decode(errors="ignore")) + 1
        text = self.edited.line(line)
        character = min(self.edited.original_column(line, character), len(text) + 1)
        return Diagnostic(line, character, message, text, self.name, hint, severity)


def scan(source: str, name: str = "cell", headers: frozenset[str] = frozenset()) -> Cell:
    """Scan a cell.

    Parameters
    ----------
    source : str
        The author's text.
    name : str
        How diagnostics name it.
    headers : frozenset of str
        The names of the author's header cells, which ``#include`` may name.

    Raises
    ------
    CompileError
        For a ``host_name`` whose template cannot be told.
    """
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    stream = tokenize(source)
    scanner = _Scanner(source, name)
    for tokens in (stream.program, *stream.macros):
        scanner.nesting(tokens)
    included = read_includes(stream.directives, headers, scanner.refuse)
    scanner.edits += included.edits
    scanner.threadgroup = threadgroup_words(stream.macros)
    found = scanner.tokens(stream.program)
    scanner.edits += conditionals(stream.program)
    scanner.edits += compound_assignments(stream.program)
    named = frozenset(tokens[0].text for tokens in stream.macros if tokens)
    pasted = pastes(stream.macros)
    for tokens in (stream.program, *stream.macros):
        scanner.edits += function_aliases(tokens)
        scanner.edits += texts(tokens, named)
        scanner.edits += [] if pasted else literals(tokens)
    asked = preprocessed(t for d in stream.directives if d.name in {"if", "elif"} for t in d.tokens)
    for tokens in stream.macros:
        if tokens and tokens[0].text not in asked:
            scanner.edits += conditionals(tokens, macro=True)
    expands = [bool(scanner.tokens(tokens, macro=True)) for tokens in stream.macros]
    if scanner.problems:
        raise CompileError(scanner.problems)
    words = {t.text for tokens in (stream.program, *stream.macros) for t in tokens if t.kind == "word"}
    return Cell(
        name,
        EditedText(source, scanner.edits),
        tuple(found),
        any(expands) or _preprocessed(found, stream.directives),
        tuple(included.cells),
        frozenset(scanner.optional),
        names_lanes(words),
        EditedText(source, included.bare).text,
        scanner.refused,
    )


def _preprocessed(found: list[Instantiation], directives: list[Directive]) -> bool:
    """Tell whether the preprocessor decides on an instantiation: by an ``#if`` or a macro in it, maybe for its name."""
    if not found:
        return False
    macros = {d.tokens[0].text for d in directives if d.name in {"define", "undef"} and d.tokens}
    words = {word for made in found for word in re.findall(r"[\w$]+", made.function)}
    conditional = any(d.name in {"if", "ifdef", "ifndef"} for d in directives)
    return conditional or not macros.isdisjoint(words) or any(not made.name for made in found)


def instantiations(expanded: str) -> tuple[Instantiation, ...]:
    """Find the instantiations in a text that went through the preprocessor, with ``# line`` marks."""
    stream = tokenize(expanded)
    scanner = _Scanner(expanded, "cell")
    marks = [(d.start, int(d.name)) for d in stream.directives if d.name.isdigit()]
    found = []
    for made in scanner.instantiations(stream.program):
        offset = scanner.places[made.name]
        line = made.line
        for start, number in marks:
            if start <= offset:
                line = number + expanded.count("\n", start, offset) - 1
        found.append(Instantiation(made.name, made.function, line))
    return tuple(found)


_SPACES = {"device": "__global", "constant": "__constant", "threadgroup": "__local", "thread": ""}


_NESTED = 4096


class _Scanner:
    """Collects the edits of one text."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.plain = EditedText(source, [])
        self.edits: list[Edit] = []
        self.problems: list[Diagnostic] = []
        self.refused: dict[str, Diagnostic] = {}
        self.optional: set[str] = set()
        self.threadgroup: Mapping[str, bool] = {"threadgroup": False}
        self.places: dict[str, int] = {}
        self.constructors: frozenset[int] = frozenset()

    def problem(self, offset: int, message: str, hint: str = "") -> None:
        line, column = self.plain.place(offset)
        self.problems.append(Diagnostic(line, column, message, self.plain.line(line), self.name, hint))

    def refuse(self, offset: int, message: str, hint: str = "") -> str:
        """Note what must not be compiled; give the name that stands for it, and that no compiler knows."""
        line, column = self.plain.place(offset)
        mark = f"$refused_{zlib.crc32(self.name.encode()):08x}_{len(self.refused)}"
        self.refused[mark] = Diagnostic(line, column, message, self.plain.line(line), self.name, hint)
        return mark

    def nesting(self, tokens: list[Token]) -> None:
        """Refuse template lists so deep that they would exhaust the parser's stack: it has no limit of its own."""
        depth = 0
        for before, token in pairwise(tokens):
            if token.text == "<" and before.kind == "word":
                depth += 1
                if depth > _NESTED:
                    message = f"template lists are nested more than {_NESTED} deep"
                    self.problem(token.start, message, "name the inner ones")
                    return
            elif token.kind != "word" and token.text != "::":
                depth = 0

    def tokens(self, tokens: list[Token], *, macro: bool = False) -> list[Instantiation]:
        """Edit one stream of tokens; give the instantiations in it."""
        blank: set[int] = set()
        found = self.instantiations(tokens, blank)
        edits, self.constructors = constructors(tokens)
        self.edits += edits
        depth = 0
        for i, token in enumerate(tokens[body(tokens) :] if macro else tokens, body(tokens) if macro else 0):
            text = token.text
            if text == "(":
                depth += 1
            elif text == ")":
                depth -= 1
            elif text == "[" and i + 1 < len(tokens) and tokens[i + 1].text == "[" and i not in blank:
                self.attributes(tokens, i, depth)
            elif token.kind != "word":
                continue
            elif text == "kernel" and i + 1 < len(tokens) and tokens[i + 1].text == "[":
                # clang takes GNU's attribute, which `kernel` becomes, only after a list in brackets.
                self.edits.append(Edit(token.start, token.end, '[[$attribute("kernel")]]'))
            elif text == "double":
                self.double(tokens, i)
            elif text in _SPACES:
                self.qualifier(tokens, i)
            elif text == "template" and i + 1 < len(tokens) and tokens[i + 1].text == "<":
                self.edits += function_parameters(tokens, i)
                self.edits += thread_parameters(tokens, i)
            elif text == "is_function_constant_defined" and i + 2 < len(tokens):
                self.optional.add(tokens[i + 2].text)
            if text in self.threadgroup:
                self.edits += storage(tokens, i, self.threadgroup, macro=macro)
        return found

    def double(self, tokens: list[Token], at: int) -> None:
        """Refuse ``double`` and ``long double``, which the compiler knows and MSL does not (MSL 2.1)."""
        token = tokens[at]
        mark = self.refuse(token.start, "'double' is not supported in Metal", "write float (MSL 2.1)")
        self.edits.append(Edit(token.start, token.end, mark))
        if at and tokens[at - 1].text == "long":
            self.edits.append(Edit(tokens[at - 1].start, tokens[at - 1].end, ""))

    # Attributes ------------------------------------------------------------------------------

    def attributes(self, tokens: list[Token], at: int, depth: int) -> None:
        """Edit the attribute list that starts at ``at``."""
        end = close(tokens, at)
        if end < 0:
            return
        inner = tokens[at + 2 : end - 1]
        i = 0
        while i < len(inner):
            token = inner[i]
            after = i + 1
            if after < len(inner) and inner[after].text == "::":  # clang::…: the compiler's own
                i += 3
                after = i
            stop = close(inner, after) if after < len(inner) and inner[after].text == "(" else i
            if token.kind == "word" and i + 1 == after:
                self.attribute(token, inner[after : stop + 1] if stop > i else [], tokens, at, end, depth)
            i = max(stop, i) + 1
            while i < len(inner) and inner[i].text == ",":
                i += 1

    def attribute(
        self, word: Token, argument: list[Token], tokens: list[Token], at: int, end: int, depth: int,
    ) -> None:  # fmt: skip
        """Edit one attribute; ``argument`` has its parentheses."""
        name = word.text
        if name in STANDARD:
            return
        last = argument[-1].end if argument else word.end
        inner = self.source[argument[0].end : argument[-1].start].strip() if argument else ""
        known = ATTRIBUTES.get(name)
        if known is None or known.argument != bool(inner) or known.argument != bool(argument):
            mark = self.refuse(word.start, *_misuse(name))
            self.edits.append(Edit(word.start, last, f'$attribute("refused", {mark})'))
            return
        if known.use == "graphics":
            inner = ""  # words of the pipeline, which nothing declares; the attribute is refused by its name
        if name == "function_constant":
            if depth > 0:
                inner = f'"{inner}"'  # a parameter names the constant that gates it
            elif at > 0 and tokens[at - 1].kind == "word":
                constant = tokens[at - 1]
                self.edits.append(Edit(tokens[end].end, tokens[end].end, f" $initial({constant.text})"))
        text = f'$attribute("{name}"{", " + " ".join(inner.split()) if inner else ""})'
        self.edits.append(Edit(word.start, last, text))

    # Instantiations --------------------------------------------------------------------------

    def instantiations(self, tokens: list[Token], blank: set[int] | None = None) -> list[Instantiation]:
        """Find explicit instantiations with a host_name, and blank their attributes."""
        found = []
        spaces: list[tuple[str, int]] = []
        braces = 0
        for i, token in enumerate(tokens):
            if token.text == "{":
                braces += 1
            elif token.text == "}":
                braces -= 1
                while spaces and spaces[-1][1] > braces:
                    spaces.pop()
            elif token.text == "namespace" and i + 2 < len(tokens) and tokens[i + 2].text == "{":
                spaces.append((tokens[i + 1].text, braces + 1))
            if token.text != "template" or i + 1 >= len(tokens) or tokens[i + 1].text == "<":
                continue
            made = self.instantiation(tokens, i, blank)
            if made:
                prefix = "".join(f"{name}::" for name, _ in spaces)
                found.append(Instantiation(made[0], prefix + made[1], self.plain.place(token.start)[0]))
                self.places[made[0]] = token.start
        return found

    def instantiation(self, tokens: list[Token], at: int, blank: set[int] | None) -> tuple[str, str] | None:
        """Read ``template [[…]] … f<T>…;`` at ``at``; give the host name and ``f<T>``."""
        stop = next((k for k in range(at, len(tokens)) if tokens[k].text in {";", "{"}), len(tokens))
        name = None
        i = at + 1
        body = i
        while i < stop:
            if tokens[i].text == "[" and i + 1 < stop and tokens[i + 1].text == "[":
                end = close(tokens, i)
                if end < 0:
                    return None
                given = _host_name(tokens[i:end])
                name = name if given is None else given
                if blank is not None:
                    blank.add(i)
                    self.edits.append(Edit(tokens[i].start, tokens[end].end, ""))
                i = end
                body = i + 1 if name is None or body <= at + 1 else body
            i += 1
        if name is None:
            return None
        function = _template_id(self.source, tokens[at + 1 : stop])
        if function is None:
            self.problem(tokens[at].start, f'host_name "{name}": cannot tell which template is instantiated',
                         f'write: template [[host_name("{name}")]] [[kernel]] decltype(f<T>) f<T>;')  # fmt: skip
            return None
        return name, function

    # Address spaces --------------------------------------------------------------------------

    def qualifier(self, tokens: list[Token], at: int) -> None:
        """Edit an address space that qualifies a member function."""
        before = at - 1
        while before >= 0 and tokens[before].text in {"const", "volatile"}:
            before -= 1
        after = at + 1
        while after < len(tokens) and tokens[after].text in {"const", "volatile", "noexcept", "override", "final"}:
            after += 1
        if before < 0 or tokens[before].text != ")" or after >= len(tokens):
            return
        if tokens[after].text in {"{", ";", "=", "->"}:
            space = _SPACES[tokens[at].text]
            # A constant object finds the member for device objects, or this one where there is none for those.
            if tokens[at].text == "constant" and "device" not in overloads(tokens, at):
                space = _SPACES["device"]
            self.edits.append(Edit(tokens[at].start, tokens[at].end, space))


def _misuse(name: str) -> tuple[str, str]:
    """Word what is wrong with an attribute, and its cure."""
    known = ATTRIBUTES.get(name)
    if known is not None:
        need = f"needs an argument: [[{name}(…)]]" if known.argument else f"takes no argument: [[{name}]]"
        return f"attribute '{name}' {need}", ""
    near = [MEANT[name]] if name in MEANT else difflib.get_close_matches(name, ATTRIBUTES, n=1)
    hint = f"did you mean [[{near[0]}]]?" if near else "see section 5.2 of the MSL specification"
    return f"unknown attribute '{name}'", hint


def _host_name(attribute: list[Token]) -> str | None:
    for i, token in enumerate(attribute):
        if token.text == "host_name":
            strings = [t.text.strip('"') for t in attribute[i:] if t.kind == "string"]
            return "".join(strings)
    return None


def _template_id(source: str, tokens: list[Token]) -> str | None:
    """Find ``f<…>`` at the end of an explicit instantiation, before the parameters if they are restated."""
    i = 0
    best = None
    while i < len(tokens):
        text = tokens[i].text
        if text in {"[", "("}:
            end = close(tokens, i)
            if end < 0:
                return None
            if text == "(" and best is not None:
                break  # the parameter list
            i = end
        elif tokens[i].kind == "word" and i + 1 < len(tokens) and tokens[i + 1].text == "<":
            end = close(tokens, i + 1)
            if end < 0:
                return None
            start = i
            while start >= 2 and tokens[start - 1].text == "::" and tokens[start - 2].kind == "word":
                start -= 2
            best = source[tokens[start].start : tokens[end].end]
            i = end
        i += 1
    return " ".join(best.split()) if best else None
