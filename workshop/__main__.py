"""The entry: `python -m workshop COMMAND`, or this file, from anywhere."""

import sys
from pathlib import Path

# Run as a file, Python puts this folder on the path, and its modules would pass for top-level ones.
ROOT = Path(__file__).resolve().parent.parent
sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p or ".").resolve() != ROOT / "workshop")]

from workshop.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], ROOT))
