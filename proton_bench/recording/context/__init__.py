"""Call paths of the host: scopes, states, metric values, and scopes in compiled programs.

In: calls of the target.
Out: context ids and values in the native module.
"""
