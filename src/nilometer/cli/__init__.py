"""The command line: options are resolved once into a frozen Spec; results go to stdout, progress to stderr."""


def main() -> None:
    """Entry point of `nilo`."""
    from .root import run

    run()
