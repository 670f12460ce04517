"""Part of `hearth doctor`: how long a question takes with the configured model on this machine."""

from __future__ import annotations

from msgspec import Struct

from gateway.ask.budget import typical_question
from gateway.ask.limits import effective_limits
from gateway.base.errors import ConfigurationError
from gateway.config.settings import Settings
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.models.catalog import resolve_model


class QuestionCheck(Struct, frozen=True, kw_only=True):
    """The estimate for a short question. Seconds and tokens are null until the model was loaded here once."""

    model: str
    seconds: float | None = None  # with the model loaded
    prompt_tokens: int | None = None
    reason: str

    @property
    def text(self) -> str:
        if self.seconds is None:
            return f"the time for a question with {self.model} is not known yet: {self.reason}"
        return (
            f"a question takes about {self.seconds:.0f} s with {self.model}; its prompt may have up to "
            f"{self.prompt_tokens:,} tokens ({self.reason})"
        )


def check_question(settings: Settings) -> QuestionCheck | None:
    """Estimate from what is kept of the model's speed; None if the settings name no usable model."""
    try:
        model = resolve_model(settings)
        limits = effective_limits(settings.ask, model.defaults, model.context_length)
        status = model.path.stat()
    except (ConfigurationError, OSError):
        return None
    file = (str(model.path), status.st_mtime_ns, status.st_size)
    kept = ThreadPlans(settings.thread_plan_dir).get(file)
    speed = kept.known(settings.model.threads).speed if kept is not None else None
    if speed is None:
        return QuestionCheck(model=model.name, reason="it is measured when the model is first loaded")
    plan = typical_question(limits, speed, settings.ask.target_seconds)
    return QuestionCheck(
        model=model.name, seconds=plan.seconds, prompt_tokens=plan.tokens, reason=plan.reason
    )
