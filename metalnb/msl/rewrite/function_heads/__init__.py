"""The passes that edit what a function's head says: its address spaces, what its templates deduce, its stage.

A tree comes in and edits go out, as for every pass of `metalnb.msl.rewrite`; here a pass finds the functions of a tree
(`FunctionHead`) and edits them and what their own bodies return, but looks into no other expression.
"""
