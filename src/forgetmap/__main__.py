"""`python -m forgetmap` is the command `forgetmap`."""

from forgetmap.cli import main

if __name__ == "__main__":
    main()
