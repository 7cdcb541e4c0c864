"""Why rows and the whole run are slow; what the file does not tell is unknown, with the reason.

In: a `Profile` with what was recorded: times, launches, counters, PC samples, samples of the host.
Out: a `Verdict` per row, and `Finding`s by the time that they can save, each with its evidence.
"""
