"""`.hatchet` and `.hatchet_msgpack`: nested nodes, as upstream and llnl-hatchet read them.

In: nested JSON or MessagePack.
Out: a `Profile`, and files that upstream's viewer opens.
"""
