"""The passes that edit function heads: address spaces, template argument deduction, stages.

Like every pass of `metalnb.msl.rewrite`, these turn a tree into edits. Each finds the functions of a tree
(`FunctionHead`), and edits their heads and return statements but no other expression.
"""
