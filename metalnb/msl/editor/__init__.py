"""Completions and descriptions for a cell that is being written, at the cursor's position.

The text may be invalid or unfinished: nothing here raises on it, or waits longer for the parser than a reader would.
Metal's names come from `language`, the author's from libclang.
"""
