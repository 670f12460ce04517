"""``python -m model_host``: serve one GGUF model on stdin and stdout. Started by the gateway's supervisor."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from model_host.engine import bindings, machine
from model_host.options import HostOptions, parse_options

if TYPE_CHECKING:
    from model_host.host import Host

_DEFECT = 70  # EX_SOFTWARE


def main() -> int:
    """Serve until shutdown or end of input, and return the exit status.

    It is 0 afterwards, 1 if the model did not load (``failed`` says why), and 70 after a defect, whose traceback is on
    stderr.
    """
    options = parse_options()
    threading.excepthook = _end_with_thread
    if options.parent:
        machine.die_with_parent(options.parent)
    machine.be_first_out_of_memory()
    # Descriptor 1 belongs to the protocol. Anything else printed there, by llama.cpp for example, goes to stderr.
    events = os.dup(1)
    os.dup2(2, 1)
    os.environ["GGML_NO_BACKTRACE"] = "1"  # on an internal error llama.cpp would start a debugger

    bindings.import_light()
    # Imported late: the lines above must come before llama.cpp can print.
    from model_host.engine.load import LoadError, begin_load

    begin_load(options.model)  # runs beside the imports that follow
    host = _host(options, events)
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
    """End the process when one of its threads dies: without that thread, requests would wait forever."""
    if issubclass(died.exc_type, BrokenPipeError):
        os._exit(0)  # the gateway is gone
    threading.__excepthook__(died)
    sys.stderr.flush()
    os._exit(_DEFECT)


def _host(options: HostOptions, events: int) -> Host[Any]:
    if options.embedding or options.rerank:
        # Imported late: while the model loads.
        from model_host.embedding.host import EmbeddingHost

        return EmbeddingHost(options, read=0, write=events)
    # Imported late: while the model loads. The template worker starts meanwhile, too.
    from model_host.prompts.renderer import TemplateWorker

    worker = TemplateWorker()
    worker.start()
    # Imported late: as above.
    from model_host.host import ModelHost

    return ModelHost(options, worker, read=0, write=events)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # the kernel frees the model faster than destructors do
