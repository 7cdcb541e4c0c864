"""What is shown while something runs.

In: the progress of an experiment.
Out: a bar on a terminal, lines elsewhere.
"""
