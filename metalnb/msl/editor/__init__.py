"""A cell that is being written, and the cursor's place in it, come in; completions and descriptions go out.

The text may be invalid or unfinished: nothing here raises on it, and nothing waits longer for the parser than a reader
would. What Metal has comes from `language`; what the author declares comes from libclang.
"""
