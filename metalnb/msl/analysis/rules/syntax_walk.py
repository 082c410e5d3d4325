"""One pass over the author's syntax tree that collects everything the rules need.

libclang's own iterator builds a list for every node and costs seconds on a long kernel. This pass uses one callback per
node, and keeps only the few kinds that a rule reads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...language.print_formats import PRINTERS
from ...language.simdgroup_names import names_simdgroups
from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed

__all__ = ["CellSyntax", "FunctionSyntax", "integer_value", "marks", "space", "strip_conversions", "walk"]

# The numbers of CXCursorKind (clang-c/Index.h), because looking up a name costs more than the visit.
_FIELD, _FUNCTION, _VAR, _PARM, _METHOD = 6, 8, 9, 10, 21
_CONSTRUCTOR, _DESTRUCTOR, _CONVERSION, _FUNCTION_TEMPLATE = 24, 25, 26, 30
_FUNCTIONS = frozenset({_FUNCTION, _METHOD, _CONSTRUCTOR, _DESTRUCTOR, _CONVERSION, _FUNCTION_TEMPLATE})
_EXPRESSION, _CALL, _FLOATING, _C_CAST = 100, 103, 107, 117
_BINARY, _COMPOUND = 114, 115
_SHIFTS = frozenset({8, 9, 28, 29})  # CXBinaryOperatorKind: <<, >>, <<=, >>=
_AT_MOST, _AT_LEAST = 13, 14  # CXBinaryOperatorKind: <=, >=
_LOOPS = frozenset({207, 208, 209})  # while, do, for
_CASTS = frozenset({_EXPRESSION, _C_CAST, 124, 126, 127, 128})  # implicit, C's, static, reinterpret, const, functional
_LIST, _LAMBDA = 119, 144
_NOTED = {_LIST: "lists", _LAMBDA: "lambdas"}
_GOTO, _INDIRECT_GOTO, _ASM, _MS_ASM = 210, 211, 215, 229
_STATEMENTS = frozenset({_GOTO, _INDIRECT_GOTO, _ASM, _MS_ASM})
_VARIABLES = frozenset({_FIELD, _VAR, _PARM})
_OPERATIONS = frozenset({_FLOATING, _BINARY, _COMPOUND})
_KEPT = _FUNCTIONS | _CASTS | _STATEMENTS | _VARIABLES | _OPERATIONS | {_CALL, _LAMBDA, _LIST}
_NAMES = frozenset({43, 45, 49, 101})  # references to types, templates and overloaded functions; and DeclRefExpr
_OVERLOADED = 49
_RECURSE, _CONTINUE = 2, 1  # CXChildVisitResult

# clang's numbers for OpenCL's address spaces, which represent Metal's (target/words.h).
_SPACES = {1: "constant", 2: "threadgroup", 3: "constant", 4: "thread", 5: "thread", 6: "device"}
_THREAD = frozenset({4, 5})
_CONSTANT = 1


@dataclass(slots=True)
class FunctionSyntax:
    """A function's declaration, and the contents of its body (including its lambdas' bodies).

    Attributes
    ----------
    cursor : clang.cindex.Cursor
    calls : list
        Calls of functions with a name that the author declares.
    barriers : list
        The calls of ``threadgroup_barrier``.
    variables : list
    prints : list
        The calls that print.
    simdgroups : bool
        Whether it names a SIMD-group or quad-group feature of Metal.
    names : set of str
        The names used in it; collected only if the text mentions a SIMD-group feature.
    """

    cursor: Any
    calls: list[Any] = field(default_factory=list)
    barriers: list[Any] = field(default_factory=list)
    variables: list[Any] = field(default_factory=list)
    prints: list[Any] = field(default_factory=list)
    simdgroups: bool = False
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CellSyntax:
    """The result of a pass.

    Attributes
    ----------
    functions : list of FunctionSyntax
    declarations : list
        Variables, parameters and members, anywhere.
    program : list
        Variables that live as long as the program: those at namespace scope, and static members.
    casts : list of (cast, parent)
        Every conversion to a pointer into thread memory, and every implicit conversion to a pointer into the constant
        space or to a value in it.
    lists : list
        Initializers in braces.
    vectors : list
        Constructions of vectors.
    literals, statements : list
        Literals of long double; goto and asm statements.
    lambdas : list
    shifts : list
        Operators that shift a scalar.
    kernels : list
        Instantiations of kernel templates.
    loops : list of (comparison, loop, bool)
        Loops whose condition is a ``<=`` (True) or ``>=`` (False) comparison.
    simdgroups, names
        As in `FunctionSyntax`, for code outside all functions.
    """

    functions: list[FunctionSyntax] = field(default_factory=list)
    declarations: list[Any] = field(default_factory=list)
    program: list[Any] = field(default_factory=list)
    casts: list[tuple[Any, Any]] = field(default_factory=list)
    lists: list[Any] = field(default_factory=list)
    vectors: list[Any] = field(default_factory=list)
    literals: list[Any] = field(default_factory=list)
    statements: list[Any] = field(default_factory=list)
    lambdas: list[Any] = field(default_factory=list)
    shifts: list[Any] = field(default_factory=list)
    kernels: list[Any] = field(default_factory=list)
    loops: list[tuple[Any, Any, bool]] = field(default_factory=list)
    simdgroups: bool = False
    names: set[str] = field(default_factory=set)


def walk(parsed: Parsed, declarations: Iterable[Any], names: frozenset[str] = frozenset()) -> CellSyntax:
    """Visit declarations and everything in them; `names` are further functions whose calls are recorded."""
    return _Walker(parsed).walk(declarations, names)


def _is_print(call: Any) -> bool:
    """Return whether a call resolves to the printing header; ``log`` may also be the logarithm."""
    function = call.referenced
    file = function.location.file if function is not None else None
    return file is not None and file.name.endswith(("$printing", "metal_logging"))


class _Walker:
    def __init__(self, parsed: Parsed) -> None:
        from clang import cindex

        self.parsed = parsed
        self.unit = parsed.unit
        # Names are examined only if the text mentions a SIMD-group feature, because this takes time.
        self.names = _NAMES if any(c.simd for c in (parsed.cell, *parsed.headers.values())) else frozenset()
        self.lib = cindex.conf.lib
        self.pointer = cindex.TypeKind.POINTER.value
        self.long_double = cindex.TypeKind.LONGDOUBLE.value
        self.lib.clang_getCursorBinaryOperatorKind.argtypes = [cindex.Cursor]  # the Python binding lacks the call
        self.callback = cindex.callbacks["cursor_visit"](self.visit)
        self.found = CellSyntax()
        self.function: FunctionSyntax | None = None

    def walk(self, declarations: Iterable[Any], names: frozenset[str]) -> CellSyntax:
        for cursor in declarations:
            if self.visit(cursor, self.unit.cursor) == _RECURSE:
                self.lib.clang_visitChildren(cursor, self.callback, None)
        function_names = {f.cursor.spelling for f in self.found.functions}.union(names) - {""}
        for function in self.found.functions:
            calls_by_name = [(c, c.spelling) for c in function.calls]
            self.found.vectors += [c for c, name in calls_by_name if name == "vec"]
            function.barriers = [c for c, name in calls_by_name if name == "threadgroup_barrier"]
            function.prints = [c for c, name in calls_by_name if name in PRINTERS and _is_print(c)]
            function.calls = [c for c, name in calls_by_name if name in function_names]
        return self.found

    def visit(self, cursor: Any, parent: Any, _: Any = None) -> int:
        kind = cursor._kind_id  # noqa: SLF001  (the public property creates an object for every node)
        if kind not in _KEPT:
            if kind in self.names:
                self.name(cursor, kind)
            return _RECURSE
        cursor._tu = self.unit  # noqa: SLF001  (a cursor that outlives the callback must hold its unit)
        syntax = self.found
        if kind in _CASTS:
            if self.changes_space(cursor, kind):
                parent._tu = self.unit  # noqa: SLF001
                syntax.casts.append((cursor, parent))
        elif kind == _CALL:
            if self.function is not None:
                self.function.calls.append(cursor)
        elif kind in _NOTED:
            getattr(syntax, _NOTED[kind]).append(cursor)
        elif kind in _VARIABLES:
            syntax.declarations.append(cursor)
            if kind == _VAR:
                (syntax.program if self.function is None else self.function.variables).append(cursor)
        elif kind in _FUNCTIONS:
            self.enter(cursor)
            return _CONTINUE
        elif kind in _OPERATIONS:
            self.operation(cursor, kind, parent)
        else:
            syntax.statements.append(cursor)
        return _RECURSE

    def name(self, cursor: Any, kind: int) -> None:
        """Record a name, and whether it is one of Metal's SIMD-group features."""
        word = cursor.spelling
        holder = self.found if self.function is None else self.function
        holder.names.add(word)
        if not names_simdgroups(word):
            return
        cursor._tu = self.unit  # noqa: SLF001
        target = self.lib.clang_getOverloadedDecl(cursor, 0) if kind == _OVERLOADED else cursor.referenced
        if target is None or self.parsed.owner(target.location) is None:
            holder.simdgroups = True

    def operation(self, cursor: Any, kind: int, parent: Any) -> None:
        if kind != _FLOATING:
            operator = self.lib.clang_getCursorBinaryOperatorKind(cursor)
            if operator in _SHIFTS:
                self.found.shifts.append(cursor)
            elif operator in {_AT_MOST, _AT_LEAST} and parent._kind_id in _LOOPS:  # noqa: SLF001
                parent._tu = self.unit  # noqa: SLF001
                self.found.loops.append((cursor, parent, operator == _AT_MOST))
        elif self.lib.clang_getCursorType(cursor)._kind_id == self.long_double:  # noqa: SLF001
            self.found.literals.append(cursor)

    def enter(self, cursor: Any) -> None:
        outer, self.function = self.function, FunctionSyntax(cursor)
        self.found.functions.append(self.function)
        self.lib.clang_visitChildren(cursor, self.callback, None)
        self.function = outer

    def changes_space(self, cursor: Any, expression_kind: int) -> bool:
        kind = self.lib.clang_getCursorType(cursor)
        if kind._kind_id != self.pointer:  # noqa: SLF001
            # libclang crashes if it is asked for the address space of an invalid type, whose number is 0.
            is_silent = expression_kind == _EXPRESSION and kind._kind_id  # noqa: SLF001
            return bool(is_silent) and self.lib.clang_getAddressSpace(kind) == _CONSTANT
        target_space = self.lib.clang_getAddressSpace(self.lib.clang_getPointeeType(kind))
        return target_space in _THREAD or (target_space == _CONSTANT and expression_kind == _EXPRESSION)


def space(kind: Any) -> str:
    """Return the address space of a type's values; an empty string if it has none."""
    while kind.kind.name in {"CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY"}:
        kind = kind.element_type
    # libclang crashes if it is asked for the address space of an invalid type.
    return _SPACES.get(kind.get_address_space(), "") if kind.kind.name != "INVALID" else ""


def marks(cursor: Any) -> dict[str, Any]:
    """Return a declaration's attributes: MSL's, and the words thread, constant and kernel."""
    return {c.spelling: c for c in children_of(cursor) if c.kind.name == "ANNOTATE_ATTR"}


def strip_conversions(cursor: Any) -> Any:
    """Return the expression inside implicit conversions and parentheses."""
    while cursor.kind.name in {"UNEXPOSED_EXPR", "PAREN_EXPR"}:
        inner = children_of(cursor)
        if len(inner) != 1:
            return cursor
        cursor = inner[0]
    return cursor


def integer_value(cursor: Any) -> int | None:
    """Evaluate a constant integer expression; libclang's Python binding lacks the call."""
    if cursor is None:
        return None
    from clang import cindex

    lib = cindex.conf.lib
    lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    lib.clang_Cursor_Evaluate.argtypes = [cindex.Cursor]
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    lib.clang_EvalResult_getKind.argtypes = lib.clang_EvalResult_dispose.argtypes = [ctypes.c_void_p]
    lib.clang_EvalResult_getAsLongLong.argtypes = [ctypes.c_void_p]
    lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    try:
        is_integer = lib.clang_EvalResult_getKind(result) == 1
        return int(lib.clang_EvalResult_getAsLongLong(result)) if is_integer else None
    finally:
        lib.clang_EvalResult_dispose(result)
