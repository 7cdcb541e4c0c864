"""The processes of one job: which ranks there are, their profiles as one, slow ranks.

In: profiles of ranks.
Out: one merged profile, gaps, and the times of ranks by scope.
"""
