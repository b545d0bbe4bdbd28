"""`python -m tilewright`: the command line."""

import sys

from tilewright.cli import main

sys.exit(main())
