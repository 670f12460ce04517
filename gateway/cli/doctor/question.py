"""Part of `hearth doctor`: how long a question takes on this machine with the configured model, and with others."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from msgspec import Struct

from gateway.ask.budget import typical_question
from gateway.ask.limits import effective_limits
from gateway.base.errors import ConfigurationError
from gateway.config.settings import Settings
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.inference.speed import Speed
from gateway.models.catalog import Catalog, resolve_model


class QuestionCheck(Struct, frozen=True, kw_only=True):
    """The estimate for a short question. Seconds and tokens are null until the speed was measured here."""

    model: str
    seconds: float | None = None  # with the model loaded
    prompt_tokens: int | None = None
    reason: str
    target_seconds: float = 0.0
    # Model of the catalog that should answer within the target; null also without a target.
    biggest: str | None = None
    biggest_seconds: float | None = None

    @property
    def text(self) -> str:
        if self.seconds is None:
            return f"the time for a question with {self.model} is not known yet: {self.reason}"
        return (
            f"a question takes about {self.seconds:.0f} s with {self.model}; its prompt may have up to "
            f"{self.prompt_tokens:,} tokens ({self.reason})"
        )

    @property
    def biggest_text(self) -> str | None:
        if self.seconds is None or not self.target_seconds:
            return None
        within = (
            f"of the catalog that should answer here within ask.target_seconds ({self.target_seconds:g} s)"
        )
        how = f"an estimate from the speed of {self.model} and the sizes of the files"
        if self.biggest is None:
            return f"there is no model {within}: {how}"
        return f"the biggest model {within} is {self.biggest}, in about {self.biggest_seconds:.0f} s: {how}"


def check_question(settings: Settings, fitting: Collection[str]) -> QuestionCheck | None:
    """Estimate from what is kept of the model's speed; None if the settings name no usable model.

    ``fitting`` are the names of the catalog's models for which there is memory.
    """
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
        reason = "it is measured when the model is first loaded with idle cores, or writes a reply"
        return QuestionCheck(model=model.name, reason=reason)
    plan = typical_question(limits, speed, settings.ask.target_seconds)
    target = settings.ask.target_seconds
    biggest, seconds = _biggest(settings, fitting, speed, model.size_bytes) if target else (None, None)
    return QuestionCheck(
        model=model.name,
        seconds=plan.seconds,
        prompt_tokens=plan.tokens,
        reason=plan.reason,
        target_seconds=target,
        biggest=biggest,
        biggest_seconds=seconds,
    )


def _biggest(
    settings: Settings, fitting: Collection[str], speed: Speed, size: int
) -> tuple[str | None, float | None]:
    """The largest chat model that answers in time if a token takes as long for each byte as with ``size`` bytes."""
    sizes = {
        row: row.size_bytes or row.path(settings.data_dir).stat().st_size
        for row in Catalog.load().rows
        if row.kind == "chat" and row.name in fitting
    }
    for row in sorted(sizes, key=lambda row: -sizes[row]):
        factor = size / (row.token_bytes or sizes[row])
        with suppress(ConfigurationError):  # the settings ask for more than the context of this model
            limits = effective_limits(settings.ask, row.defaults, row.context)
            scaled = Speed(speed.reading * factor, speed.writing * factor)
            plan = typical_question(limits, scaled, settings.ask.target_seconds)
            if plan.seconds is not None and plan.seconds <= settings.ask.target_seconds:
                return row.name, plan.seconds
    return None, None
