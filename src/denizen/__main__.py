"""`python -m denizen` is `denizen`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, which may be anybody's

from denizen.cli.main import main

main()
