"""Files for CI: Markdown, JUnit, annotations of GitHub.

In: an outcome of the gate or a comparison.
Out: text and JSON in the forms that these tools take.
"""
