"""``python -m dynident``."""

from dynident.cli import main

main()
