"""Attachments to Triton: launch hooks, instrumentation of kernels, the interpreter.

In: kernels that Triton loads and launches.
Out: metadata of launches, and kernels that record their scopes.
"""
