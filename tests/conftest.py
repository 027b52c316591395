"""What holds for every test: one thread of linear algebra, as `identify` has it."""

from __future__ import annotations

import os

# before numpy is loaded; the matrices are small, and threads would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
