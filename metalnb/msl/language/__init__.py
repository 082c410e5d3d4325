"""Tables of the specification: attributes, versions, the reference of names, and what metalnb does not support.

Input: a name or a cell's words. Output: what the specification says about them. A table is the only place for its
facts: the editors' colors, completion, the documents and the rules all read them here.
"""
