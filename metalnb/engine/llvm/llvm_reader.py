"""Parse the LLVM IR that clang 22 writes for kernels. Any other line raises an error that quotes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .instruction_syntax import extracted_type, read_instruction
from .instructions import IRFunction, IRInstruction, IRModule, Operand
from .llvm_types import IRType, UnreadText, parts_of, split_type, type_of

__all__ = ["read"]

_HEAD = re.compile(r'define .*?@("[^"]*"|[-\w.$]+)\((.*)$')
_GLOBAL = re.compile(r'@("[^"]*"|[-\w.$]+) = ')
_DECLARED = re.compile(r'@("[^"]*"|[-\w.$]+)\(')
_TYPE = re.compile(r'(%(?:"[^"]*"|[-\w.$]+)) = type (.*)$')
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')
_IGNORED = ("source_filename", ";", "module asm", "$", "^", "uselistorder")


def read(text: str, *, bodies: bool = True) -> IRModule:
    """Return a module's records.

    Parameters
    ----------
    text : str
    bodies : bool, optional
        Whether to parse function bodies as well.

    Raises
    ------
    UnreadText
        If a line cannot be parsed; the error quotes it.
    """
    module = IRModule()
    lines = iter(text.splitlines())
    for line in lines:
        if not line or line.startswith(_IGNORED):
            continue
        if line.startswith("define ") and not bodies:
            for inside in lines:
                if inside == "}":
                    break
        elif line.startswith("define "):
            function = _function(line, lines, module.types)
            module.functions[function.name] = function
        elif not _top(module, line):
            message = f"LLVM IR: not understood: {line}"
            raise UnreadText(message)
    return module


def _top(module: IRModule, line: str) -> bool:
    """Store a line outside functions; return False if it is unknown."""
    if line.startswith("@") and (found := _GLOBAL.match(line)):
        module.globals[found[1]] = line
    elif line.startswith("declare ") and (found := _DECLARED.search(line)):
        module.declarations[found[1]] = line
    elif line.startswith("!"):
        number, _, _ = line.partition(" = ")
        module.metadata[number] = line
    elif line.startswith("attributes "):
        module.attributes[line.split(" ", 2)[1]] = line
    elif line.startswith("target "):
        module.target.append(line)
    elif found := _TYPE.match(line):
        if found[2] != "opaque":
            module.types[found[1]] = type_of(found[2])
    else:
        return False
    return True


def _function(head: str, lines: Iterator[str], types: Mapping[str, IRType]) -> IRFunction:
    found = _HEAD.match(head)
    if found is None:
        message = f"LLVM IR: not understood: {head}"
        raise UnreadText(message)
    parameters = []
    for part in parts_of(_list_of(found[2])):
        kind, rest = split_type(part)
        parameters.append(Operand(kind, rest.split()[-1]))
    blocks: dict[str, list[IRInstruction]] = {}
    current: list[IRInstruction] | None = None
    label = f"%{len(parameters)}"
    open_switch = ""
    for line in lines:
        if line == "}":
            break
        if open_switch:
            open_switch += " " + line.strip()
            if not line.strip().startswith("]"):
                continue
            line, open_switch = open_switch, ""  # noqa: PLW2901  (the statement spans several lines)
        elif not line or line.lstrip().startswith((";", "#dbg")):
            continue
        elif not line.startswith(" ") and (named := _LABEL.match(line)):
            label = f"%{named[1]}"
            current = blocks[label] = []
            continue
        elif line.endswith("[") and line.lstrip().startswith("switch "):
            open_switch = line.strip()
            continue
        if current is None:
            current = blocks[label] = []
        made = read_instruction(line)
        made.block = label
        if made.opcode == "extractvalue":
            made.type = extracted_type(made, types)
        current.append(made)
    return IRFunction(found[1], head, parameters, blocks)


def _list_of(text: str) -> str:
    """Return the text up to the closing parenthesis of a parameter list."""
    depth = 1
    quoted = False
    for i, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif not quoted:
            depth += (mark in "([{<") - (mark in ")]}>")
            if not depth:
                return text[:i]
    message = f"no closing bracket: {text}"
    raise UnreadText(message)
