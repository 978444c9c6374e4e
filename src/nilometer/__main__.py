"""`python -m nilometer` is `nilo`."""

from nilometer.cli import main

if __name__ == "__main__":
    main()
