"""The messages between the gateway and a model host: the only part of ``model_host`` that the gateway imports.

It imports nothing else of ``model_host``.
"""

from model_host.protocol.counters import *  # noqa: F403
from model_host.protocol.messages import *  # noqa: F403
from model_host.protocol.parts import *  # noqa: F403
from model_host.protocol.requests import *  # noqa: F403
