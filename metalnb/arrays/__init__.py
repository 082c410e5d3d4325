"""Arrays on an engine: memory, views, and the protocols of NumPy and of other libraries.

Input: data, or shapes to allocate, and an engine. Output: `Array`, and dispatches started in order (``stream``);
reading an array waits for them. Nothing here computes or knows a kernel: an operator or a method looks up its
function in ``implementations``, which is filled from above. Of the layers below, only the engine's protocol is used.

promotion.py, dtype_info.py
    The dtypes, how they promote, and queries about them.
memory_pool.py
    Blocks of an engine's memory, pooled, and their other users.
stream.py
    Dispatches in flight: started in order, waited for when their results are read.
core.py
    Memory with a dtype, a shape, strides and an offset.
implementations.py, operators.py, op_methods.py, methods.py, protocols.py
    What Python's operators, NumPy's methods and other libraries' protocols do with an array.
array.py, convert.py
    The class `Array`; arrays from other data.
"""
