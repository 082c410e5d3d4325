from __future__ import annotations
import functools
from typing import NamedTuple, Protocol
from ..llvm.instructions import IRFunction, IRInstruction
from ...engine.llvm.llvm_types import MemoryLayout
class Root(NamedTuple):
    kind: str
    number: int
    size: int
    name: str
class PointerPlace(NamedTuple):
    root: str
    fixed: int = 0
    terms: tuple[tuple[str,int],...] = ()
class Roots:
    def __init__(self, function, layout, entry):
        self.f=function; self.layout=layout; self.entry=entry
        self.d={m.result:m for m in function if m.result}
        self.place=functools.cache(self._place)
    def _place(self, p):
        m=self.d.get(p)
        if m is None or m.opcode!='getelementptr': return PointerPlace(p)
        from ..vectoriser.shape_analysis.shape_rules import steps_of
        base=self.place(m.operands[0].text)
        off,steps=steps_of(m,self.layout)
        return PointerPlace(base.root, base.fixed+off, base.terms+tuple((m.operands[i].text,s) for i,s in steps))
    def root(self,name): return self.entry.root(name)
    def sources(self,name):
        return frozenset(n for n in self.d if self.root(n))
