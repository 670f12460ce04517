"""People's tasks: each services account is an owner of its own at the gateway, and hears of its tasks in private."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import Any

import structlog
from msgspec import Struct

from clients.irc.gateway import TASK_ID, Gateway, GatewayError
from clients.irc.memory import StateFile
from clients.irc.network import Network
from clients.irc.protocol.wire import clean
from clients.irc.requests import Request

_ID = re.compile(rf"({TASK_ID})\s+(.+)", re.I | re.S)
_MOST_SHOWN = 5
# Without a common channel the bot does not see a user leave, and the nick may have passed to another user.
_UNSEEN_SECONDS = 600.0
_RETRY_SECONDS = 5.0
_MARKS = {"running": ">", "waiting": "?", "paused": "=", "done": "x", "cancelled": "-"}

log = structlog.get_logger(__name__)


class _Follower(Struct, eq=False):
    request: Request
    limit: asyncio.Timeout
    task: asyncio.Task[None] | None = None

    def extend(self, request: Request) -> None:
        self.request = request
        known = request.network.shares_channel(request.nick)
        self.limit.reschedule(None if known else asyncio.get_running_loop().time() + _UNSEEN_SECONDS)


class PeopleTasks:
    """Methods raise GatewayError and StateError.

    An answer goes to the BREAKPOINT that its author was told of: never to a later one.
    """

    def __init__(self, gateway: Gateway, file: StateFile, mark: str) -> None:
        self._gateway = gateway
        self._file = file
        self._mark = mark
        self._told: dict[str, dict[str, int]] = {}  # by user and task, the BREAKPOINT that waits
        self._followers: dict[str, _Follower] = {}
        # By user, so that each answers one question at a time.
        self._answering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def heard(self, request: Request) -> None:
        """Tell this user from now on what their tasks have to say, in private."""
        if not request.account or request.user not in self._file.state.tasks:
            return
        if (known := self._followers.get(request.user)) is not None:
            known.extend(request)
            return
        follower = self._followers[request.user] = _Follower(request, asyncio.timeout(None))
        follower.task = asyncio.create_task(self._follow(follower))

    def renamed(self, network: Network, old: str, new: str) -> None:
        for each in self._of(network, old):
            each.request.nick = new

    def left(self, network: Network, nick: str | None) -> None:
        """Stop following for a user who has quit, or with None, for all users of the network."""
        for each in self._of(network, nick):
            self._stop(each.request.user)

    async def close(self) -> None:
        tasks = [each.task for each in self._followers.values() if each.task is not None]
        for user in list(self._followers):
            self._stop(user)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def listing(self, request: Request) -> list[str]:
        lines = []
        for run in (await self._gateway.runs(request.user))[:_MOST_SHOWN]:
            done = sum(step["state"] == "done" for step in run["steps"])
            head = f"[{_MARKS[run['state']]}] {run['task']} {run['title']} ({done} of {len(run['steps'])})"
            lines.append(f"{head} {self._question(request.user, run)}".rstrip())
        return lines

    async def begin(self, request: Request, words: str) -> str:
        task = await self._gateway.begin_task(request.user, words)
        if request.user not in self._file.state.tasks:
            self._file.state.tasks.add(request.user)
            self._file.save()
        self.heard(request)
        return task

    async def answer(self, request: Request, text: str) -> str:
        """Answer the BREAKPOINT that the user was told of; the reply says what became of it."""
        async with self._answering[request.user]:
            return await self._answer(request, text)

    async def _answer(self, request: Request, text: str) -> str:
        match, told = _ID.fullmatch(text), self._told.setdefault(request.user, {})
        if not match and len(told) > 1:
            await self._drop_answered(request.user)
        task, value = (match[1].upper(), match[2]) if match else (next(iter(told), ""), text)
        if not match and len(told) > 1:
            return f"several of your tasks wait: {', '.join(told)}. Say {self._mark}answer TASK ANSWER."
        number = told.pop(task, None)  # a second answer must not go to the next BREAKPOINT
        if number is None:
            waiting = [
                run
                for run in await self._gateway.runs(request.user)
                if run["breakpoint"] and task in ("", run["task"])
            ]
            if not waiting:
                return "none of your tasks waits for that."
            return f"{waiting[0]['task']}: {self._question(request.user, waiting[0])} Say it again to answer."
        try:
            await self._gateway.answer_task(request.user, task, number, value)
        except GatewayError as error:
            if error.status not in (404, 409):
                told[task] = number
            if error.code == "expired":
                return f"that was not taken, it came too late: {self._mark}do {task} asks again."
            if error.status in (400, 404, 409):
                return f"that was not taken: {error}"
            raise
        if told.get(task) == number:  # told once more meanwhile
            del told[task]
        return f"{task} goes on."

    async def _drop_answered(self, user: str) -> None:
        """Forget BREAKPOINTs that do not wait any more, such as those answered elsewhere."""
        told = self._told[user]
        for run in await self._gateway.runs(user):
            waits = run["breakpoint"]["id"] if run["breakpoint"] else None
            if told.get(run["task"], waits) != waits:
                del told[run["task"]]

    async def forget(self, request: Request) -> None:
        """Delete a user's tasks and the facts that these remembered."""
        self._stop(request.user)
        self._told.pop(request.user, None)
        if request.user in self._file.state.tasks:
            await self._gateway.erase_tasks(request.user)
            self._file.state.tasks.discard(request.user)
            self._file.save()

    def _question(self, user: str, run: dict[str, Any]) -> str:
        """The question at which a run waits; it counts as told."""
        stop = run["breakpoint"]
        if not stop:
            return ""
        self._told.setdefault(user, {})[run["task"]] = stop["id"]
        expired = f" (expired; {self._mark}do {run['task']} asks again)" if stop["expired"] else ""
        return f"{clean(stop['question'])}{_choices(stop['schema'])}{expired}"

    async def _follow(self, follower: _Follower) -> None:
        user = follower.request.user
        try:
            async with follower.limit:
                follower.extend(follower.request)
                while True:
                    try:
                        async for task, text, number in self._gateway.notices(user):
                            if number is not None:
                                self._told.setdefault(user, {})[task] = number
                            asks = f" Say {self._mark}answer {task} ANSWER." if number is not None else ""
                            to = follower.request
                            to.network.say(to.nick, f"{task}: {clean(text)}{asks}")
                    except GatewayError as error:
                        if error.code != "timeout":
                            log.warning("notices cannot be had", user=user, problem=str(error))
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            self._followers.pop(user, None)

    def _of(self, network: Network, nick: str | None) -> list[_Follower]:
        def is_meant(request: Request) -> bool:
            same = nick is None or network.fold(request.nick) == network.fold(nick)
            return request.network is network and same

        return [each for each in self._followers.values() if is_meant(each.request)]

    def _stop(self, user: str) -> None:
        known = self._followers.pop(user, None)
        if known is not None and known.task is not None:
            known.task.cancel()


def _choices(schema: dict[str, Any]) -> str:
    choices = [choice for each in schema.get("anyOf", [schema]) for choice in each.get("enum", ())]
    return f" [{'/'.join(choices)}]" if choices else ""
