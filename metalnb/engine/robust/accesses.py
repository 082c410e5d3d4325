from __future__ import annotations
from dataclasses import dataclass
@dataclass(frozen=True)
class Access:
    number:int
    made:object
    pointer:str
    size:int
    kind:str
def accesses(function, layout, skip=()):
    found=[]
    for m in function:
        if m.opcode in('load','store','atomicrmw','cmpxchg'):
            p=m.pointer.text
            t=m.operands[0].type if m.opcode=='store' else m.operands[1].type if m.opcode in('cmpxchg',) else m.type
            k={'load':'reads','store':'writes'}.get(m.opcode,'updates')
            found.append((m,p,layout.size(t),k))
        elif m.opcode=='call' and m.word.startswith('llvm.mem'):
            n=int(m.operands[2].text) if m.operands[2].text.isdigit() else 1<<40
            found.append((m,m.operands[0].text,n,'writes'))
            if 'memset' not in m.word: found.append((m,m.operands[1].text,n,'reads'))
    return found
