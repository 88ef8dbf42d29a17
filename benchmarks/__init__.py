"""`DeltaSaver` beside its peers, in one run: bytes, CPU and wall time as ratios.

Run it: `python -m benchmarks --help`.
"""
