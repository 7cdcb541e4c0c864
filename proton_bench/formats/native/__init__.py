"""`.proton`, the file of record: MessagePack columns.

In: bytes of a recording or of a command.
Out: a `Profile` with everything that was recorded, and its bytes.
"""
