"""How many hosts a number of users needs: a simulation, not a measurement. It assumes that

- each user has one conversation and sends a message every ``--every`` seconds on average, at random times, which is the
  busiest time of a day; prompts have ``--prompt`` tokens, replies ``--reply`` on average (exponential);
- a share ``--cached`` of a prompt comes from the cache of the host that had the conversation last, nothing elsewhere;
- a host prefills one prompt after the other with ``--prefill`` tokens a second, and meanwhile decodes ``--one`` tokens
  a second for each request, ``--all`` for all requests together at most;
- a conversation goes to its own host unless that has 1.25 times its share of the open requests;
- gateways, network and database add nothing; throughput.py measures the gateway.

The speeds are to be replaced by those of your hosts: `hearth bench` measures them. Prints the fewest hosts with which
95 % of the first tokens come within ``--first`` seconds and 95 % of the replies are faster than ``--slowest`` tokens a
second.

    .venv/bin/python -m benchmarks.upstream.users --users 1 10 1000 100000
"""

from __future__ import annotations

import heapq
import math
import random
from argparse import Namespace

from benchmarks.common import command_line

_STEP = 0.05  # seconds
_BOUND = 1.25


class Host:
    """Prefills in order; decodes for all at once, so that each open reply has got the same tokens since its start."""

    def __init__(self) -> None:
        self.prefilled = 0.0  # when its last prompt is
        self.starts: list[tuple[float, float]] = []  # end of the prefill, tokens
        self.ends: list[tuple[float, float, float]] = []  # `given` at the end, time of the start, tokens
        self.given = 0.0

    @property
    def open(self) -> int:
        return len(self.starts) + len(self.ends)


def simulate(users: int, count: int, given: Namespace) -> tuple[list[float], list[float], float]:
    """Seconds to each first token, tokens per second of each reply, and the share of prompt tokens from cache."""
    chance = random.Random(1)
    hosts = [Host() for _ in range(count)]
    last: dict[int, int] = {}  # the host of each user's last message
    firsts: list[float] = []
    speeds: list[float] = []
    cached = messages = opened = 0
    arrival = chance.expovariate(users / given.every)
    for step in range(int(given.seconds / _STEP)):
        now = step * _STEP
        while arrival <= now:
            user = chance.randrange(users)
            most = math.ceil(_BOUND * (opened + 1) / count)
            home = next(at % count for at in range(user, user + count) if hosts[at % count].open < most)
            known = last.get(user, home) == home  # each conversation began before
            last[user] = home
            fresh = given.prompt * (1 - given.cached * known)
            hosts[home].prefilled = max(hosts[home].prefilled, arrival) + fresh / given.prefill
            firsts.append(hosts[home].prefilled - arrival)
            tokens = 1 + chance.expovariate(1 / given.reply)
            heapq.heappush(hosts[home].starts, (hosts[home].prefilled, tokens))
            cached, messages, opened = cached + known, messages + 1, opened + 1
            arrival += chance.expovariate(users / given.every)
        for host in hosts:
            while host.starts and host.starts[0][0] <= now:
                start, tokens = heapq.heappop(host.starts)
                heapq.heappush(host.ends, (host.given + tokens, start, tokens))
            if host.ends:
                host.given += _STEP * min(given.one, given.all / len(host.ends))
            while host.ends and host.ends[0][0] <= host.given:
                _, start, tokens = heapq.heappop(host.ends)
                speeds.append(tokens / (now + _STEP - start))
                opened -= 1
    return sorted(firsts), sorted(speeds), given.cached * cached / max(messages, 1)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[1, 10, 1000, 100_000])
    for name, value in (
        ("every", 300),
        ("prompt", 2000),
        ("reply", 250),
        ("cached", 0.85),
        ("prefill", 8000),
        ("one", 60),
        ("all", 1500),
        ("first", 2),
        ("slowest", 15),
        ("seconds", 1200),
    ):
        parser.add_argument(f"--{name}", type=float, default=value)
    given = parser.parse_args()
    print("  users  messages/s  hosts  first token p50, p95 (s)  tokens/s p5  cached")
    for users in given.users:
        rate = users / given.every
        count = max(
            1,
            math.ceil(rate * max(given.reply / given.all, given.prompt * (1 - given.cached) / given.prefill)),
        )
        while True:
            firsts, speeds, cached = simulate(users, count, given)
            if not speeds:
                raise SystemExit(f"no reply of {users} users ended: set --seconds above {given.every:g}")
            first, slow = firsts[int(0.95 * len(firsts))], speeds[int(0.05 * len(speeds))]
            if first <= given.first and slow >= given.slowest:
                break
            count = max(count + 1, int(count * 1.05))
        middle = firsts[len(firsts) // 2]
        print(
            f"{users:7}  {rate:10.3f}  {count:5}  {middle:14.2f}, {first:7.2f}  {slow:11.1f}  {cached:6.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
