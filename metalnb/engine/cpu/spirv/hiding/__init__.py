"""What the device's compiler must not know: zeros that it cannot see through, and the passes that hide values by them.

Each pass has what it makes wrong in its docstring; `metalnb.engine.cpu.spirv.pass_table` has them in order.
"""
