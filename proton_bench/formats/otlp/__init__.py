"""Profiles of OpenTelemetry (OTLP), for collectors and servers.

In: a `Profile`, or bytes of the message ``ProfilesData``.
Out: the other one.
"""
