from __future__ import annotations
from typing import NamedTuple
from .memory_roots import Roots
from .accesses import accesses, Access
from ..vectoriser.shape_analysis.reducible_flow import ControlFlow
class Proof(NamedTuple):
    wrong: frozenset
    stops: frozenset
    read: tuple
class Analysis:
    def __init__(self, module, entry):
        self.function=module.functions['metalnb_thread']
        self.roots=Roots(self.function, module.layout, entry)
        acc=[a for a in accesses(self.function, module.layout) if self.roots.place(a[1]).root not in ('%0','%1')]
        self.accesses=[Access(i,*a) for i,a in enumerate(acc)]
        self.flow=ControlFlow(self.function)
    def proof(self, facts): return self.everything
    @property
    def everything(self):
        return Proof(frozenset(a.number for a in self.accesses), frozenset(self.flow.loops), ())
    def loop(self,h): return self.flow.loops[h].body
    def latches(self,h): return list(self.flow.loops[h].latches)
    def exit_of(self,h):
        body=self.flow.loops[h].body
        for l in sorted(body, key=lambda b:b!=h):
            last=self.function.blocks[l][-1]
            if last.opcode=='br' and len(last.targets)==2 and sum(t in body for t in last.targets)==1 and all(self.dom(l,x) for x in self.latches(h)): return l
        return None
    def dom(self,a,b):
        while b!=a:
            n=self.flow.idom.get(b)
            if n is None or n==b: return False
            b=n
        return True
