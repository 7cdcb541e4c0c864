"""Files of experiments below `.proton`: profiles, manifests.

In: finished runs.
Out: folders from which an experiment can continue.
"""
