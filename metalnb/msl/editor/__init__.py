"""Completions and descriptions at the cursor in a cell that is being written.

The source may be invalid or unfinished: nothing here raises on it, or waits longer for the parser than a user would.
Metal's names come from `language`, the author's from libclang.
"""
