"""A cell's characters come in; tokens, a tree of brackets and declarations, and recorded edits go out.

Everything here works on text alone, without a parser for C++: what is asked here must have an answer that tokens can
give. Every change to an author's text is an `Edit`, so that a diagnostic finds its way back to the author's own line.
"""
