"""Parse an edited cell, and report diagnostics in Metal's terms, at the author's positions.

This package contains everything that depends on libclang's flags, its precompiled headers, its need for a deep stack or
the wording of its messages. `analysis` handles the meaning of a cell.
"""
