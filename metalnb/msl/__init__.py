"""The language: from a cell's text to signatures and to one source text for a target.

``scan`` reads tokens, ``reflect`` asks the compiler's parser, ``lower`` writes. Nothing here knows an engine.
"""
