"""Models of torch programs as call paths: layers, operators, and backward below its forward pass.

In: the program's torch, once it is imported.
Out: frames of layers and operators on the threads that run them.
"""
