"""Files of experiments below `.proton`: profiles, manifests, noise.

In: finished runs.
Out: folders from which an experiment can continue.
"""
