"""Turn a cell's characters into tokens, a tree of brackets and declarations, and recorded edits.

Everything here works on text, without a C++ parser, and so knows only what the tokens show. Every change to an
author's text is an `Edit`, so that diagnostics can be mapped back to the author's own line.
"""
