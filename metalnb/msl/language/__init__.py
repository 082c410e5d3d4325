"""Tables of the specification: attributes, versions, the reference of names, and what metalnb does not support.

Input: a name or a cell's words. Output: the specification's facts about them. Each fact is in one table only: the
editors' colors, completion, the documents and the rules all read it here.
"""
