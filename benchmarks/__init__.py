"""`DeltaSaver` beside its peers, in one run: bytes, CPU and wall time as ratios.

Run it: `python -m benchmarks --help`.
"""

import sys
from pathlib import Path

# The network that PostgreSQL is measured through is a helper of the tests.
sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers" / "network"))
