"""`python -m celc`."""

import sys

from celc.cli import main

sys.exit(main())
