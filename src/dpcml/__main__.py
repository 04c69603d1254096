"""``python -m dpcml`` is the command ``dpcml``."""

from dpcml.cli import main

if __name__ == "__main__":
    main()
