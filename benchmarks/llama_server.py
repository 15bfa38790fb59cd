"""Serve a GGUF file by llama.cpp's own server, which the PyPI package `xllamacpp` brings along.

Usage: ``python benchmarks/llama_server.py MODEL.gguf PORT``

It runs on the processor, with one thread and one conversation at a time, until it is ended.
"""

from __future__ import annotations

import sys
import threading


def main(model: str, port: int) -> None:
    import xllamacpp

    how = xllamacpp.CommonParams()
    how.model.path = model
    how.hostnames = ["127.0.0.1"]
    how.port = port
    how.n_ctx = 512
    how.n_parallel = 1
    how.cpuparams.n_threads = 1
    server = xllamacpp.Server(how)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
