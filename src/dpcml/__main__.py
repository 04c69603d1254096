"""The command ``dpcml``, also as ``python -m dpcml``."""

import sys
from contextlib import suppress


def main() -> None:
    """Run the command line; the version is told without importing it, which takes longer than all else."""
    if sys.argv[1:] == ["--version"]:
        from dpcml.utils.packages import version

        with suppress(OSError):  # the command line tells what is wrong with the output
            sys.stdout.write(f"dpcml {version()}\n")
            sys.stdout.flush()
            return
    from dpcml.cli import main as run

    run()


if __name__ == "__main__":
    main()
