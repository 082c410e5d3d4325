from __future__ import annotations
from typing import NamedTuple, Any
Grid=tuple[int,int,int]
class LaunchFacts(NamedTuple):
    grid: Grid
    threadgroup: Grid
    sizes: tuple
    scalars: Any
_OTHERS = frozenset({bytearray, int, type(None)})
def sizes_of(arguments):
    return tuple([a.nbytes if type(a) not in _OTHERS else _size(a) for a in arguments])
def _size(argument):
    return 0 if argument is None else argument if type(argument) is int else len(argument)
def facts_of(arguments, grid, threadgroup):
    scalars = {n: a for n, a in enumerate(arguments) if type(a) is bytearray}
    return LaunchFacts(grid, threadgroup, sizes_of(arguments), scalars)
