from __future__ import annotations
import re
from ...robust.memory_roots import Root
class LaneEntry:
    def __init__(self, module, count):
        self.f=module.functions['metalnb_thread']; self.m=module
        self.d={m.result:m for m in self.f if m.result}
        self.given=self.f.parameters[0].text
    def root(self,name):
        if name.startswith('@'): 
            return None
        m=self.d.get(name)
        if m is None: return None
        if m.opcode=='alloca': return Root('variable',-1,self.m.layout.size(m.element),name)
        if m.opcode!='inttoptr': return None
        s=self.d.get(m.operands[0].text)
        if s is None: return None
        if s.opcode=='call' and s.word=='metalnb_storage':
            line=self.m.globals[s.operands[0].text[1:]]
            return Root('variable',-1,int(re.search(r'\{ i32 (\d+)',line)[1]),name)
        if s.opcode=='load':
            p=s.pointer.text
            if p==self.given: return Root('argument',0,0,name)
            g=self.d.get(p)
            if g is not None and g.opcode=='getelementptr' and g.operands[0].text==self.given: return Root('argument',int(g.operands[1].text)//8,0,name)
        return None
