"""`hearth memory`: the summaries that replace older messages in prompts."""

from __future__ import annotations

import click
from tqdm import tqdm

from gateway.cli.common.client import GatewayClient, with_client
from gateway.cli.common.options import CommandGroup
from gateway.cli.common.text import say


@click.group(cls=CommandGroup)
def memory() -> None:
    """Manage the summaries of conversations."""


@memory.command()
@click.option("--to", type=int, help="Version of the prompts; by default the current one of each.")
@click.option("--conversation", help="Only the conversation of this id.")
@with_client
def convert(client: GatewayClient, to: int | None, conversation: str | None) -> None:
    """Rewrite summaries of other prompt versions. The old ones stay, marked as superseded."""
    names = (
        [conversation]
        if conversation
        else [str(each["id"]) for each in client.every("/v1/conversations?archived=true")]
    )
    made = rejected = 0
    for name in tqdm(names, unit=" conversations", disable=None, leave=False):
        done = client.post(f"/v1/conversations/{name}/convert", {} if to is None else {"to": to})
        made += done["summaries"]
        rejected += done["rejected"]
    say(f"{made} summaries made again in {len(names)} conversations")
    if rejected:
        say(f"{rejected} new ones were rejected; the old ones stay. Run the command again to retry them.")


@memory.command()
@click.argument("conversation")
@with_client
def show(client: GatewayClient, conversation: str) -> None:
    """Show the summaries of a conversation, with the messages that each covers."""
    for each in client.every(f"/v1/conversations/{conversation}/summaries"):
        state = "live" if each["superseded_by"] is None else f"superseded by {each['superseded_by']}"
        prompt = f"{each['prompt_name'] or 'no prompt'} {each['prompt_version']}"
        head = f"{each['seq']}  {each['level']}  {each['first']}-{each['last']}  {each['tokens']} tokens"
        say(f"{head}  {prompt}  {state}")
        say(each["text"])
        for pin in each["pins"]:
            say(f"  - {pin}")
