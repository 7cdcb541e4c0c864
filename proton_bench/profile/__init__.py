"""What a profile is: call-path tree, metric columns, devices, distributions, provenance.

Needs numpy and nothing else, and reads or writes no files; `proton_bench.formats` does that.
"""

from __future__ import annotations

from proton_bench.profile.builder import ProfileBuilder
from proton_bench.profile.device import Device, Variant
from proton_bench.profile.distribution import Distribution
from proton_bench.profile.distribution_table import DistributionTable
from proton_bench.profile.frame import FrameKind
from proton_bench.profile.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.profile.profile import Profile
from proton_bench.profile.provenance import Provenance

__all__ = [
    "Aggregation",
    "Device",
    "Distribution",
    "DistributionTable",
    "FrameKind",
    "MetricColumn",
    "MetricSpec",
    "Profile",
    "ProfileBuilder",
    "Provenance",
    "ValueKind",
    "Variant",
]
