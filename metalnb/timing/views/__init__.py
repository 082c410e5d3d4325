"""Render records of `metalnb.timing` for terminals and notebooks: text, HTML and charts.

Nothing is measured or decided here. The records do not import these modules: `metalnb.rendering` finds them by name.
"""
