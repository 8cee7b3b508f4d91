"""The command ``tvmspec``."""

import signal
import sys

from . import _tvmspec


def main() -> None:
    """Run the command line of this process, and end with its exit code."""
    # Python only notes the signal, and would raise its exception when the command is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = [sys.executable, "-m", "tvmspec"]
    sys.exit(_tvmspec.main(["tvmspec", *sys.argv[1:]], program))


if __name__ == "__main__":
    main()
