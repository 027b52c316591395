"""``python -m dynident``."""

from dynident.cli import main

if __name__ == "__main__":
    main()
