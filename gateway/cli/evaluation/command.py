"""`hearth eval`: run a question set through the whole flow and score it, or compare two runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
import msgspec
from tqdm import tqdm

from gateway import __version__
from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.resources import bundled
from gateway.cli.common.client import ServerOptions, with_server
from gateway.cli.common.options import PathType, json_option
from gateway.cli.common.surroundings import EXIT_INTERRUPTED, exit_status
from gateway.cli.common.text import say, table
from gateway.cli.evaluation.setup import Scoring, Setup, TermSource, opened_setup
from gateway.evaluation.comparison import compare, comparison_table
from gateway.evaluation.dialogues import is_dialogue, load_dialogues
from gateway.evaluation.kept import check_writable, keep_run, read_run, rows_so_far
from gateway.evaluation.measures import intervals
from gateway.evaluation.memory import load_lines
from gateway.evaluation.questions import Question, load_questions, problems, set_name
from gateway.evaluation.report import Run, by_category, headline, markdown, summary, tables
from gateway.telemetry import logs


@click.command(name="eval")
@click.option(
    "--set", "question_set", type=PathType(), help="Question set (TOML). Default: the built-in set."
)
@click.option("--model", help="Use this model instead of the configured one.")
@click.option("--adapter", default="", help="Ask with this adapter of model.adapters.")
@click.option(
    "--limit", type=click.IntRange(1), help="Ask at most this many questions, spread evenly over the set."
)
@click.option(
    "--memory",
    is_flag=True,
    help="Score what the memory learns from lines of conversation (eval/memory.toml), or what it keeps of long "
    "dialogues (--set eval/dialogues); their categories are the policies.",
)
@click.option(
    "--messages",
    type=click.IntRange(1),
    help="With --memory, replay only the first messages of each long dialogue.",
)
@click.option("--category", help="Ask only questions of this category.")
@click.option(
    "--terms",
    type=click.Choice(["model", "question"]),
    default="model",
    help="`question` searches with the question's own words and scores retrieval only.  [default: model]",
)
@click.option(
    "--out", type=PathType(), help="Write the run to this file, and resume an unfinished run in it."
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown tables.")
@click.option("--against", type=PathType(exists=True), help="Compare the run with this saved run.")
@click.option("--compare", nargs=2, type=PathType(exists=True), help="Compare two saved runs.")
@click.option(
    "--check", is_flag=True, help="Ask nothing; check that the set's pages and facts are in the wiki."
)
@click.option(
    "--server",
    "from_server",
    is_flag=True,
    help="Ask the running server, or the one at --url. It must use the built-in wiki or the one in --data-dir.",
)
@json_option
@with_server
@click.pass_context
def evaluate(
    ctx: click.Context,
    question_set: Path | None,
    model: str | None,
    adapter: str,
    limit: int | None,
    memory: bool,
    messages: int | None,
    category: str | None,
    terms: TermSource,
    out: Path | None,
    as_markdown: bool,
    against: Path | None,
    compare: tuple[Path, Path] | None,
    check: bool,
    from_server: bool,
    as_json: bool,
    server: ServerOptions,
) -> None:
    """Run a question set and score retrieval, answers and citations.

    By default, the command loads a model itself and uses the built-in wiki, or the wiki in --data-dir. A running server
    is used only with --server.
    """
    if compare:
        typed = click.core.ParameterSource.COMMANDLINE
        options = ctx.command.params
        given = {each.opts[0] for each in options if ctx.get_parameter_source(each.name or "") is typed}
        if extra := sorted(given - {"--compare", "--json"}):
            raise click.UsageError(f"--compare cannot be combined with {extra[0]}, only with --json")
        _show_comparison(read_run(compare[0]), read_run(compare[1]), as_json)
        return
    if as_markdown and (as_json or against):
        raise click.UsageError("--markdown cannot be combined with --json or --against")
    terms = "question" if check else terms
    from_server = from_server or bool(server.url)
    if from_server and (model or terms == "question"):
        raise click.UsageError(
            "--server cannot be combined with --model, --terms or --check: the server has its own model and terms"
        )
    if memory and (from_server or terms == "question"):
        raise click.UsageError(
            "--memory loads a model of its own: it goes without --server, --terms and --check"
        )
    if adapter and (from_server or memory or terms == "question"):
        raise click.UsageError("--adapter goes without --server, --memory, --terms and --check")
    if out is not None:
        check_writable(out)
    earlier = read_run(against) if against is not None else None
    path = question_set or bundled("eval/memory.toml" if memory else "eval/esolangs.toml")
    dialogues = memory and is_dialogue(path)
    if messages is not None and not dialogues:
        raise click.UsageError("--messages is for --memory with --set eval/dialogues")
    known: Sequence[Question] = (
        load_dialogues(path, messages) if dialogues else load_lines(path) if memory else load_questions(path)
    )
    questions = _chosen(known, category, limit)
    if terms == "question":
        questions = [question for question in questions if question.answerable]
    with ExitStack() as stack:
        setup = stack.enter_context(opened_setup(terms, model, adapter, from_server, server))
        logs.configure(msgspec.structs.replace(setup.settings.log, level="warning"))
        if check:
            _show_problems(asyncio.run(_problems(setup, questions)), len(questions))
            return
        run, status = asyncio.run(_run(setup, set_name(path), questions, out, memory, dialogues))
    if earlier is not None:
        _show_comparison(earlier, run, as_json)
    else:
        _print(run, as_json, as_markdown)
    if status:
        kept = f"run the same command to resume {out}" if out else "with --out FILE, a run can be resumed"
        say(f"stopped after {len(run.rows)} of {len(questions)} questions; {kept}", err=True)
        ctx.exit(status)


async def _problems(setup: Setup, questions: Sequence[Question]) -> list[str]:
    async with setup.answering() as answering:
        assert answering.wiki is not None
        return await problems(answering.wiki, questions)


def _show_problems(found: list[str], questions: int) -> None:
    """Print the errors of a set. Raises ConfigurationError if there are any."""
    for problem in found:
        say(problem)
    if found:
        raise ConfigurationError(
            f"the question set does not match the wiki: {len(found)} errors, listed above"
        )
    say(f"{questions} answerable questions, and every fact is on a page of the wiki")


async def _run(
    setup: Setup, name: str, questions: Sequence[Question], out: Path | None, memory: bool, dialogues: bool
) -> tuple[Run, int]:
    """Return the run and the exit status. Each row is written to ``out`` immediately; an interrupted run has fewer."""
    async with setup.remembering(dialogues) if memory else setup.answering() as answering:
        run = Run(
            version=__version__,
            model=answering.model,
            weights=answering.weights,
            question_set=name,
            server=setup.address,
            prompts=setup.prompts(),
            settings=setup.flow_settings(memory),
            started_at=time.time(),
            rows=[],
        )
        rows = rows_so_far(out, run, questions) if out else []
        status = await _score(answering.rows, questions, msgspec.structs.replace(run, rows=rows), out)
    order = {question.id: place for place, question in enumerate(questions)}
    rows.sort(key=lambda row: order[row.id])
    return msgspec.structs.replace(run, rows=rows), status


async def _score(rows: Scoring, questions: Sequence[Question], run: Run, out: Path | None) -> int:
    """Add the missing rows to ``run``. Return the exit status, which says why it ended early."""
    done = {row.id for row in run.rows}
    left = [question for question in questions if question.id not in done]
    with tqdm(total=len(questions), initial=len(done), unit=" questions", disable=None) as bar:
        try:
            async for row in rows(left):
                run.rows.append(row)
                bar.set_postfix_str(f"{sum(each.right for each in run.rows)} right", refresh=False)
                bar.update()
                if out:
                    keep_run(out, run)
        except asyncio.CancelledError:  # Ctrl-C: the rows so far are the result
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            return EXIT_INTERRUPTED
        except ConfigurationError:
            raise  # the model cannot start
        except HearthError as error:
            say(f"hearth: {error.message}", err=True)
            return exit_status(error)
    return 0


def _chosen(questions: Sequence[Question], category: str | None, limit: int | None) -> Sequence[Question]:
    """Select the questions of a category, and of these ``limit`` at even distances."""
    if category is not None:
        known = sorted({question.category for question in questions})
        if category not in known:
            raise ConfigurationError(f"the set has no category `{category}`; it has {', '.join(known)}")
        questions = [question for question in questions if question.category == category]
    if limit is None or limit >= len(questions):
        return questions
    return [questions[index * len(questions) // limit] for index in range(limit)]


def _print(run: Run, as_json: bool, as_markdown: bool) -> None:
    if as_json:
        result = {
            "summary": summary(run.rows),
            "intervals": intervals(run.rows),
            "categories": by_category(run.rows),
            "run": run,
        }
        say(result)
    elif as_markdown:
        say(markdown(run), nl=False)
    else:
        say(headline(run))
        for each in tables(run):
            say("\n" + table(each))
        for row in run.rows:
            if row.error:
                say(f"{row.id} failed: {row.error}", err=True)


def _show_comparison(before: Run, after: Run, as_json: bool) -> None:
    """Print both runs' measures side by side, the questions that changed, and the sign test."""
    result = compare(before, after)
    if as_json:
        say(result)
        return
    say(f"the runs differ in: {', '.join(result['differ_in']) or 'nothing but their outcome'}")
    say(table(comparison_table(result)))
    for word in ("better", "worse"):
        for change in result[word]:
            old, new = change["answers"]
            say(f"{word}: {change['text']}\n    {old}\n  → {new}")
    changed = f"{len(result['better'])} better, {len(result['worse'])} worse of {result['questions']}"
    say(f"{changed}; sign test p = {result['p_value']:.3f}")
