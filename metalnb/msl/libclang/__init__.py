"""An edited cell comes in; a parsed translation unit, and diagnostics in Metal's words at the author's places, go out.

All that knows libclang's flags, its precompiled headers, its need for a deep stack and the wording of its messages is
here. What a cell means is not asked here, but in `analysis`.
"""
