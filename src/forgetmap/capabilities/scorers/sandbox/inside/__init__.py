"""What runs inside the sandbox: two processes, each started by `programs`.

`main` locks the process in, then hands over to `tested` (the program) or to `checker` (its tests).
These modules must not import forgetmap, and they import each other by relative names: in the
sandbox there is nothing but this folder and Python's own library.
"""
