"""Names of the types of arrays that all rooms hand to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
