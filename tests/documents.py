"""A document to attach: two pages of one line each."""

from pathlib import Path
from typing import Final

from denizen.documents import read_pdf

BRIDGE: Final = Path(__file__).parent / "data" / "documents" / "bridge.pdf"
LINE: Final = "The bridge over the Elster is open."
COMMAND: Final = "$(rm -rf build)"
"""What its second page says to run."""
PAPER: Final = read_pdf(BRIDGE.read_bytes(), "bridge.pdf")
