"""An adapter for each engine: it loads a data set, and answers tasks in the engine's own
language."""

import sys
from pathlib import Path

# They measure with what the benchmarks of celc alone measure with.
sys.path.append(str(Path(__file__).resolve().parents[2]))
