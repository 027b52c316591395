"""``python -m dynident``, and ``dynident``: ends in one line from the first instant on."""

import gc
import os
import signal

INTERRUPTED = 130


def main() -> None:
    """Load the command line, run it and exit."""
    # a traceback through half-loaded modules would tell nobody anything
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    gc.disable()  # until all is loaded: it would only look through what stays, again and again
    from dynident.cli import main as run

    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        leave()


def leave(number: int = signal.SIGINT, frame: object = None) -> None:
    """End at once; nothing has been begun, or everything is done."""
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
