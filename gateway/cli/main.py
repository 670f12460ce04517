"""The `hearth` command: runs a command and turns every expected error into one line and an exit status.

Commands are imported when they run, so `hearth --help` stays fast.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence

import click

from gateway import __version__
from gateway.base.errors import HearthError
from gateway.base.private import keep_files_private
from gateway.cli.common.surroundings import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    allow_interrupts,
    clean_up_when_terminated,
    complain,
    drop_output,
    ensure_streams,
    exit_status,
    failure,
    without_interrupts,
)
from gateway.cli.common.text import say

# The module with the command, and its help.
COMMANDS = {
    "start": ("server.start:start", "Run the server."),
    "stop": ("server.stop:stop", "Stop the server of a data directory."),
    "status": ("server.status:status", "Show the server's state and load."),
    "ask": ("ask:ask", "Ask the wiki a question."),
    "chat": ("chat.command:chat", "Talk with the model."),
    "assistants": ("assistants:assistants", "Manage the characters that speak in conversations."),
    "facts": ("facts:facts", "Show and change what was learned about you."),
    "tasks": ("tasks.command:tasks", "Manage and run tasks, with their checklists."),
    "mcp": ("mcp.command:mcp", "Offer the server's tools to an editor or agent (MCP)."),
    "eval": ("evaluation.command:evaluate", "Score answers, citations and retrieval on a question set."),
    "memory": ("memory:memory", "Manage the summaries of conversations."),
    "generate": ("generate:generate", "Run one prompt, once or N times."),
    "pull": ("hub.pull:pull", "Download a model."),
    "models": ("models:models", "List known and installed models, or switch to another."),
    "import-wiki": ("imports.wiki:import_wiki", "Fill the wiki from a MediaWiki export or a folder."),
    "context": ("context.command:context", "Understand a codebase: callers, impact, outline."),
    "doctor": ("doctor.command:doctor", "Check what this machine can run."),
    "bench": ("bench:bench", "Measure a server's speed."),
    "log": ("log.command:log", "Look at past requests."),
    "backup": ("backup:backup", "Copy the database while the server runs."),
    "store": ("store:store", "Move conversations between SQLite and PostgreSQL."),
    "export": ("export:export", "Write conversations, facts and tasks to a file."),
    "import": ("imports.command:import_", "Read what `hearth export` wrote, or other chats."),
    "key": ("key:key", "Manage API keys."),
    "config": ("config:config", "Show the configuration."),
}


# Names of these commands in other model servers.
_ELSEWHERE = {
    "serve": "start", "server": "start", "run": "chat", "list": "models", "ls": "models", "ps": "status",
    "search": "ask", "index": "context",
}  # fmt: skip


class _LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        with without_interrupts():
            command = getattr(importlib.import_module(f"gateway.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            name = error.command_name
            known = _ELSEWHERE.get(name)
            message = f"{error.message} Did you mean {known!r}?" if known else None
            raise click.NoSuchCommand(
                name, message, possibilities=() if known else COMMANDS, ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_LazyGroup)
@click.version_option(__version__, message=f"hearth {__version__}", help="Show the version.")
def cli() -> None:
    """A self-hosted inference server: answers from a wiki and chat on a local model."""


def run(arguments: Sequence[str], program: str = "hearth") -> int:
    """Run one command line and return its exit status. Expected errors become one line on stderr.

    ``program`` is the name in help and errors; `ctx` is the group `hearth context`.
    """
    try:
        allow_interrupts()
        command = cli.get_command(click.Context(cli), "context") if program == "ctx" else cli
        assert command is not None
        result = command.main(
            list(arguments), prog_name=program, standalone_mode=False, help_option_names=["-h", "--help"]
        )
        sys.stdout.flush()
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue(), err=True, nl=False)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except HearthError as error:
        complain(error.message)
        return exit_status(error)
    except BrokenPipeError:
        drop_output()  # the reader, such as `head`, has closed the pipe
        return EXIT_FAILED
    except UnicodeEncodeError:  # bytes that are not text arrive as lone surrogates
        complain("an argument or the standard input is not UTF-8")
        return EXIT_USAGE
    except OSError as error:
        sentence, status = failure(error)
        complain(sentence)
        drop_output()
        return status
    return result if isinstance(result, int) else 0


def main(program: str = "hearth") -> None:
    keep_files_private()
    ensure_streams()
    clean_up_when_terminated()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # as in arguments; refused where the text is used
    sys.exit(run(sys.argv[1:], program))


if __name__ == "__main__":
    main()
