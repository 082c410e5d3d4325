"""Records of `metalnb.timing` in, what a terminal and a notebook show of them out: text, HTML and charts.

Nothing is measured or decided here, and no other module imports these: `metalnb.rendering` finds them by name.
"""
