"""Arrays on an engine: memory, views and NumPy's protocols. What is computed with them is in ``library_kernels``.

types.py, inspection.py
    The dtypes there are, how they promote, and what can be asked about them.
memory.py
    Blocks of an engine's memory, pooled; who else looks at them.
stream.py
    Dispatches under way: started in order, waited for when somebody reads.
core.py
    Memory seen with a dtype, a shape, strides and an offset.
operators.py, methods.py, protocols.py
    What Python's operators, NumPy's methods and other libraries' protocols do with it.
array.py, convert.py
    The class `Array`; arrays from other data.
"""
