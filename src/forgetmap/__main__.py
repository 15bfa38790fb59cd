"""`python -m forgetmap` is the command `forgetmap`."""

from forgetmap.cli.app import main

if __name__ == "__main__":
    main()
