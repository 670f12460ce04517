"""hearth's model routes as a Ray Serve application: each replica owns one model host, and idle ones end.

    RAY_USAGE_STATS_ENABLED=0 serve run deploy.ray.app:app max_replicas=4

It takes hearth's settings, from the same files and variables. The arguments are those of :class:`Arguments`.
"""

# No deferred annotations: Ray reads the type of the arguments from the function.
import fcntl
import itertools
import os
from pathlib import Path

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from starlette.applications import Starlette

from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from gateway.models.catalog import resolve_model, with_model_name

_NEVER = 1e9  # seconds

# For a cluster that `serve run` starts itself.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


class Arguments(BaseModel):
    """How many replicas there may be, and what each of them reserves.

    ``parallel`` of the model's settings is how many requests a replica has before another one starts, and
    ``idle_seconds`` for how long a replica outlives its last request.
    """

    model_config = ConfigDict(extra="forbid")

    min_replicas: int = 0
    max_replicas: int = 2
    cpus: float = 1.0
    gpus: float = 0.0


@serve.deployment(
    name="model",
    request_router_config=RequestRouterConfig(
        request_router_class="ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
    ),
)
@serve.ingress()
class Replica:
    """The gateway's routes for models, in Ray's process; the host is its child and ends with it."""

    def __init__(self, settings: Settings) -> None:
        folder, self._lock = own_folder(settings.data_dir / "ray")
        models = folder / "models"
        if not models.is_symlink():
            models.symlink_to(settings.data_dir / "models")
        self._settings = replace(settings, data_dir=folder)

    def __serve_build_asgi_app__(self) -> Starlette:
        from gateway.server.app import MODEL_ENDPOINTS, create_app

        return create_app(self._settings, routes=MODEL_ENDPOINTS)


def own_folder(parent: Path) -> tuple[Path, int]:
    """The first folder that no living replica has, with the KV snapshots of the last one; and what locks it."""
    for number in itertools.count():
        folder = parent / str(number)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "replica.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return folder, lock
    raise AssertionError("the numbers do not end")


def replica_settings(settings: Settings) -> Settings:
    """``settings`` for a replica: Ray is its reaper, and what people write is stored in front of it."""
    name = settings.model.name
    path = Path(name).expanduser()
    return Settings(
        data_dir=settings.data_dir,
        server=replace(settings.server, host="127.0.0.1"),
        # A replica has another working directory.
        model=replace(
            settings.model, name=str(path.resolve()) if path.is_file() else name, idle_seconds=-1.0
        ),
        embedding=settings.embedding,
        rerank=settings.rerank,
        wiki=replace(settings.wiki, load_sample=False, api_url=""),
        log=settings.log,
    )


def app(arguments: Arguments) -> serve.Application:
    """Raises ConfigurationError for wrong settings, and for a model that is not here."""
    given = with_model_name(load_settings({}, os.environ, None).settings)
    settings = replica_settings(given)
    resolve_model(settings)  # each replica would fail with it, again and again
    model, idle = settings.model, given.model.idle_seconds
    return Replica.options(
        autoscaling_config=AutoscalingConfig(
            min_replicas=arguments.min_replicas,
            max_replicas=arguments.max_replicas,
            target_ongoing_requests=model.parallel,
            # A request that finds no replica waits for the next report. Deprecated, but Ray has nothing else for it.
            metrics_interval_s=1.0,
            upscale_delay_s=0.0,  # the load is a mean over some seconds as it is
            downscale_delay_s=idle if idle >= 0 else _NEVER,
        ),
        max_ongoing_requests=model.parallel + model.max_waiting,
        ray_actor_options={"num_cpus": arguments.cpus, "num_gpus": arguments.gpus},
        graceful_shutdown_timeout_s=settings.server.shutdown_grace_seconds + model.stop_grace_seconds,
    ).bind(settings)
