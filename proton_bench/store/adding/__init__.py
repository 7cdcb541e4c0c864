"""Files become rows of a store.

In: files of any known format, folders of them, and spools in which others write.
Out: commits to the tables, and which files were new, known or could not be read.
"""
