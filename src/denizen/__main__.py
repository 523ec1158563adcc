"""`python -m denizen` is `denizen`."""

from denizen.cli.main import main

main()
