"""`hearth eval`: a question set through the whole flow, scored; two runs compared."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import click
import msgspec
from tqdm import tqdm

from gateway import logs
from gateway.app import create_app
from gateway.ask.cache import CompactionCache
from gateway.ask.flow import AskFlow
from gateway.cli.options import json_option, settings_of
from gateway.errors import ConfigurationError
from gateway.evaluation.questions import Question, load_questions
from gateway.evaluation.report import Run, by_category, compare, encode, markdown, summary
from gateway.evaluation.run import Evaluator
from gateway.evaluation.score import Row
from gateway.prompts import load_prompts
from gateway.resources import bundled
from gateway.settings import Settings
from gateway.store.request_log import RequestRecord


@click.command(name="eval")
@click.option(
    "--set", "question_set", type=click.Path(path_type=Path), help="A question set of your own (TOML)."
)
@click.option("--model", help="Instead of the configured model.")
@click.option("--limit", type=click.IntRange(1), help="Only so many questions, spread over the set.")
@click.option("--category", help="Only questions of this category.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Keep the run in this file; an unfinished one goes on."
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print tables for a document.")
@click.option(
    "--compare",
    "compared",
    nargs=2,
    type=click.Path(path_type=Path, exists=True),
    help="Compare two kept runs.",
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="Evaluate on this data directory's wiki.")
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="Read settings from this TOML file too."
)
@json_option
def evaluate(
    question_set: Path | None,
    model: str | None,
    limit: int | None,
    category: str | None,
    out: Path | None,
    as_markdown: bool,
    compared: tuple[Path, Path] | None,
    data_dir: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Ask the questions of a set, by default on the built-in wiki, and score answers, citations and retrieval."""
    if compared:
        _show_comparison(compared, as_json)
        return
    path = question_set or bundled("eval/esolangs.toml")
    questions = _chosen(load_questions(path), category, limit)
    with tempfile.TemporaryDirectory() if data_dir is None else nullcontext(str(data_dir)) as folder:
        settings = settings_of(Path(folder), config_file, model__name=model).settings
        logs.configure(msgspec.structs.replace(settings.log, level="warning"))
        run = asyncio.run(_run(settings, path.name, questions, out))
    if as_json:
        click.echo(msgspec.json.encode({"summary": summary(run.rows), "run": run}))
    elif as_markdown:
        click.echo(markdown(run), nl=False)
    else:
        _show(run)


async def _run(settings: Settings, name: str, questions: list[Question], out: Path | None) -> Run:
    """All rows; an interrupted run returns what it has, and keeps it in ``out``."""
    prompts = load_prompts(settings.data_dir / "prompts")
    versions = {each: prompts.get(each).version for each in prompts.names()}
    async with _evaluator(settings) as (evaluator, model):
        chosen = msgspec.to_builtins(settings.ask)
        run = Run(
            model=model, question_set=name, prompts=versions, settings=chosen, started_at=time.time(), rows=[]
        )
        done = _kept(out, run)
        rows = [row for row in done if row.id in {question.id for question in questions}]
        left = [question for question in questions if question.id not in {row.id for row in rows}]
        with tqdm(total=len(questions), initial=len(rows), unit=" questions", disable=None) as bar:
            try:
                async for row in evaluator.run(left):
                    rows.append(row)
                    bar.update()
                    bar.set_postfix_str(f"{sum(each.right for each in rows)} right")
                    _keep(out, msgspec.structs.replace(run, rows=rows))
            except asyncio.CancelledError:
                click.echo(f"stopped after {len(rows)} of {len(questions)} questions", err=True)
    return msgspec.structs.replace(run, rows=rows)


@asynccontextmanager
async def _evaluator(settings: Settings) -> AsyncIterator[tuple[Evaluator, str]]:
    """The running application's flow, with records that come here instead of into the log."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        services = app.state.services
        records: list[RequestRecord] = []

        async def keep(record: RequestRecord) -> None:
            records.append(record)

        flow = AskFlow(
            settings.ask,
            services.inference,
            services.wiki,
            load_prompts(settings.data_dir / "prompts"),
            defaults=services.model.defaults,
            notice=None,
            model_name=services.model.name,
            fetch_timeout=settings.wiki.fetch_timeout_seconds,
            record=keep,
            cache=CompactionCache(services.database),
        )
        yield Evaluator(flow, services.wiki, records), services.model.name


def _chosen(questions: list[Question], category: str | None, limit: int | None) -> list[Question]:
    """The questions of a category, thinned out evenly to ``limit``."""
    if category is not None:
        known = sorted({question.category for question in questions})
        if category not in known:
            raise ConfigurationError(f"there is no category `{category}`; there are: {', '.join(known)}")
        questions = [question for question in questions if question.category == category]
    if limit is None or limit >= len(questions):
        return questions
    return [questions[index * len(questions) // limit] for index in range(limit)]


def _kept(out: Path | None, run: Run) -> list[Row]:
    """Rows of an earlier run of the same kind. Raises ConfigurationError for a file of another kind."""
    if out is None or not out.exists():
        return []
    earlier = _read(out)
    same = ("model", "question_set", "prompts", "settings")
    changed = [name for name in same if getattr(earlier, name) != getattr(run, name)]
    if changed:
        raise ConfigurationError(f"{out} is of a run with another {changed[0]}; choose another file")
    return earlier.rows


def _keep(out: Path | None, run: Run) -> None:
    if out is None:
        return
    partial = out.with_name(f".{out.name}.partial")
    partial.write_bytes(encode(run))
    partial.replace(out)


def _read(path: Path) -> Run:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"{path} is no kept evaluation: {error}") from None


def _show(run: Run) -> None:
    told = summary(run.rows)
    click.echo(f"{run.model} on {run.question_set}")
    for name, value in told.items():
        if name not in ("tokens", "seconds"):
            click.echo(f"  {name.replace('_', ' '):<30} {'–' if value is None else value}")
    for category, (right, count) in by_category(run.rows).items():
        click.echo(f"  right: {category:<23} {right} of {count}")
    total = told["seconds"].get("total")
    if total:
        click.echo(f"  {'seconds a question':<30} {total[0]:.2f} (median), {total[1]:.2f} (90th percentile)")
    for row in run.rows:
        if row.error:
            click.echo(f"  {row.id} failed: {row.error}", err=True)


def _show_comparison(paths: tuple[Path, Path], as_json: bool) -> None:
    told = compare(_read(paths[0]), _read(paths[1]))
    if as_json:
        click.echo(msgspec.json.encode(told))
        return
    click.echo(f"{'':<32}{told['models'][0]:>18}{told['models'][1]:>18}")
    before, after = told["summaries"]
    for name, value in before.items():
        if name not in ("tokens", "seconds"):
            click.echo(f"{name.replace('_', ' '):<32}{value!s:>18}{after[name]!s:>18}")
    for word in ("better", "worse"):
        for change in told[word]:
            click.echo(f"{word}: {change['text']}\n    {change['answers'][0]}\n  → {change['answers'][1]}")
    changed = f"{len(told['better'])} better, {len(told['worse'])} worse of {told['questions']}"
    click.echo(f"{changed}; sign test p = {told['p_value']:.3f}")
