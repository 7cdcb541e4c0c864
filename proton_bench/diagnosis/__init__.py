"""What of this installation works, what is missing, and how to mend it."""

from __future__ import annotations

from proton_bench.diagnosis.examination import examine
from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status

__all__ = ["Diagnosis", "Finding", "Section", "Status", "examine"]
