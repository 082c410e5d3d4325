"""Parse the LLVM IR that clang 22 writes for kernels. Any other line raises an error that quotes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .instruction_syntax import extracted_type, read_instruction
from .instructions import IRFunction, IRInstruction, IRModule, Operand
from .llvm_types import IRType, UnsupportedIR, split_list, split_type, type_of

__all__ = ["read_module"]

_HEAD = re.compile(r'define .*?@("[^"]*"|[-\w.$]+)\((.*)$')
_GLOBAL = re.compile(r'@("[^"]*"|[-\w.$]+) = ')
_DECLARED = re.compile(r'@("[^"]*"|[-\w.$]+)\(')
_TYPE = re.compile(r'(%(?:"[^"]*"|[-\w.$]+)) = type (.*)$')
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')
_IGNORED = ("source_filename", ";", "module asm", "$", "^", "uselistorder")


def read_module(text: str, *, bodies: bool = True) -> IRModule:
    """Return a module's records.

    Parameters
    ----------
    text : str
    bodies : bool, optional
        Whether to parse function bodies as well.

    Raises
    ------
    UnsupportedIR
        If a line cannot be parsed; the error quotes it.
    """
    module = IRModule()
    lines = iter(text.splitlines())
    for line in lines:
        if not line or line.startswith(_IGNORED):
            continue
        if line.startswith("define ") and not bodies:
            for body_line in lines:
                if body_line == "}":
                    break
        elif line.startswith("define "):
            function = _read_function(line, lines, module.types)
            module.functions[function.name] = function
        elif not _read_top_level(module, line):
            message = f"cannot parse this LLVM IR: {line}"
            raise UnsupportedIR(message)
    return module


def _read_top_level(module: IRModule, line: str) -> bool:
    """Store a line outside functions; return False if it is unknown."""
    if line.startswith("@") and (match := _GLOBAL.match(line)):
        module.globals[match[1]] = line
    elif line.startswith("declare ") and (match := _DECLARED.search(line)):
        module.declarations[match[1]] = line
    elif line.startswith("!"):
        number, _, _ = line.partition(" = ")
        module.metadata[number] = line
    elif line.startswith("attributes "):
        module.attributes[line.split(" ", 2)[1]] = line
    elif line.startswith("target "):
        module.target.append(line)
    elif match := _TYPE.match(line):
        if match[2] != "opaque":
            module.types[match[1]] = type_of(match[2])
    else:
        return False
    return True


def _read_function(head: str, lines: Iterator[str], types: Mapping[str, IRType]) -> IRFunction:
    match = _HEAD.match(head)
    if match is None:
        message = f"cannot parse this LLVM IR: {head}"
        raise UnsupportedIR(message)
    parameters = []
    for part in split_list(_parameter_list(match[2])):
        ir_type, rest = split_type(part)
        parameters.append(Operand(ir_type, rest.split()[-1]))
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
        elif not line.startswith(" ") and (label_match := _LABEL.match(line)):
            label = f"%{label_match[1]}"
            current = blocks[label] = []
            continue
        elif line.endswith("[") and line.lstrip().startswith("switch "):
            open_switch = line.strip()
            continue
        if current is None:
            current = blocks[label] = []
        inst = read_instruction(line)
        inst.block = label
        if inst.opcode == "extractvalue":
            inst.type = extracted_type(inst, types)
        current.append(inst)
    return IRFunction(match[1], head, parameters, blocks)


def _parameter_list(text: str) -> str:
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
    raise UnsupportedIR(message)
