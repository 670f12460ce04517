"""``python -m model_host``: serve one GGUF model on stdin and stdout. Started by the gateway's supervisor."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model_host.engine import bindings, machine
from model_host.engine.threads import parse_plan

if TYPE_CHECKING:
    from model_host.host import Host


_DEFECT = 70  # EX_SOFTWARE


def main() -> int:
    """Serve until shutdown or end of input.

    Exit status: 0 afterwards, 1 when the model did not load (``failed`` says why), 70 when a thread died of a defect
    (its traceback is on stderr).
    """
    arguments = _parse()
    threading.excepthook = _end_with_thread
    if arguments.parent:
        machine.die_with_parent(arguments.parent)
    machine.be_first_out_of_memory()
    # Descriptor 1 belongs to the protocol. Whatever else prints there, llama.cpp included, goes to stderr.
    events = os.dup(1)
    os.dup2(2, 1)
    os.environ["GGML_NO_BACKTRACE"] = "1"  # on an internal error llama.cpp would start a debugger

    bindings.import_light()
    # Imported late: the lines above must come before llama.cpp can print.
    from model_host.engine.load import LoadError, begin_load

    begin_load(arguments.model)  # which runs beside the imports that follow
    host = _host(arguments, events)
    signal.signal(signal.SIGTERM, lambda *_: host.intake.close())
    try:
        host.serve()
    except LoadError as failure:
        if host.intake.closing is None:
            host.fail(failure.code, str(failure))
            return 1
    except BrokenPipeError:
        pass  # the gateway is gone
    except Exception:
        traceback.print_exc()
        return _DEFECT
    return 0


def _end_with_thread(died: threading.ExceptHookArgs) -> None:
    """End the host with any of its threads: without one of them requests would wait for ever."""
    if issubclass(died.exc_type, BrokenPipeError):
        os._exit(0)  # nobody reads our events any more: the gateway is gone
    threading.__excepthook__(died)
    sys.stderr.flush()
    os._exit(_DEFECT)


def _host(arguments: argparse.Namespace, events: int) -> Host[Any]:
    # Imported late: while the model is being loaded. The template worker starts meanwhile, too.
    from model_host.prompts.renderer import TemplateWorker

    worker = TemplateWorker()
    if not arguments.embedding:
        worker.start()
    # Imported late: as above.
    from model_host.host import HostOptions, ModelHost

    options = HostOptions(
        model=arguments.model,
        context=arguments.context,
        parallel=arguments.parallel,
        chunk=arguments.chunk,
        threads=arguments.threads or machine.usable_cpus(),
        max_waiting=arguments.max_waiting,
        thread_plan=arguments.thread_plan if not arguments.threads else None,
        drafts=arguments.drafts,
        snapshots=arguments.snapshots,
        snapshot_bytes=arguments.snapshot_bytes,
        quiet_seconds=arguments.snapshot_after,
    )
    if not arguments.embedding:
        return ModelHost(options, worker, read=0, write=events)
    # Imported late: a host that generates text has no use for it.
    from model_host.embedding.host import EmbeddingHost

    return EmbeddingHost(options, read=0, write=events)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="model_host", description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the GGUF file")
    parser.add_argument(
        "--embedding", action="store_true", help="make vectors; the model is an embedding model"
    )
    parser.add_argument(
        "--context", type=int, default=8192, help="cells of the KV cache, or the longest text"
    )
    parser.add_argument("--parallel", type=int, default=8, help="sequences decoded together")
    parser.add_argument("--chunk", type=int, default=512, help="tokens of one step at most")
    parser.add_argument("--threads", type=int, default=0, help="0: what is fastest")
    parser.add_argument(
        "--thread-plan",
        type=parse_plan,
        default={},
        help="SIZE:THREADS,… as measured before; without it the host measures",
    )
    parser.add_argument("--max-waiting", type=int, default=64, help="requests that may wait")
    parser.add_argument("--drafts", type=int, default=8, help="guessed tokens of one step at most; 0: none")
    parser.add_argument(
        "--snapshots", type=Path, help="folder for saved KV sequences; without it none are saved"
    )
    parser.add_argument("--snapshot-bytes", type=int, default=1 << 32, help="all of them together at most")
    parser.add_argument(
        "--snapshot-after", type=float, default=20.0, help="idle seconds before they are saved"
    )
    parser.add_argument("--parent", type=int, default=0, help="process id to die with")
    return parser.parse_args()


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # the kernel frees the model faster than destructors do
