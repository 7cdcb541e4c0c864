"""What every room may use: files and pipes, text from elsewhere, units, bounds on time.

In: names of files, foreign text, numbers.
Out: files that are whole, text that is safe to show.
"""
