"""Records of `metalnb.timing` in; what a terminal and a notebook show of them out: text, HTML and charts.

Nothing is measured or decided here. The records do not import these modules: `metalnb.rendering` finds them by name.
"""
