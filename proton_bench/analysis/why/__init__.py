"""Why kernels and the run are slow: one verdict per row, and findings about the whole run.

In: a `Profile` with what was recorded: times, launches, counters, PC samples, samples of the host.
Out: a `Verdict` per row, `Finding`s by the time that they can save, and what a change did.
Nothing is said without evidence: what the file does not tell is ``unknown``, with the reason.
"""
