"""What experiments keep below `.proton`: profiles, manifests, noise.

In: finished runs.
Out: folders that an experiment can go on from.
"""
