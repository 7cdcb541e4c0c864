"""Files for CI: Markdown, JUnit, annotations of GitHub, charts of other tools.

In: an outcome of the gate or a comparison.
Out: text and JSON in the forms that these tools take.
"""
