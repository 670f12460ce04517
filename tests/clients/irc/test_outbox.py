"""The outbox with a sender that fails."""

from __future__ import annotations

import asyncio

import pytest

from clients.irc.outbox import Line, Outbox
from tests.waiting import until


@pytest.mark.parametrize("seconds_per_line", [0.0, 0.001])
async def test_a_failing_sender_does_not_stop_the_program(seconds_per_line: float) -> None:
    """It fails at once, without suspending, as a closed connection does; later it works again."""
    attempts: list[str] = []
    sent: list[str] = []
    broken = True

    async def send(line: Line) -> bool:
        attempts.append(line.text)
        assert len(attempts) < 1000, "tried again and again without a pause"
        if not broken:
            sent.append(line.text)
        return not broken

    outbox = Outbox(send, lambda _: True, burst=5, seconds_per_line=seconds_per_line)
    later = asyncio.get_running_loop().time() + 1000
    outbox.put([Line(target="bob", text=text, until=later) for text in ("one", "two")])
    running = asyncio.create_task(outbox.run())
    try:
        await until(lambda: len(attempts) >= 3 or running.done())
        assert not running.done(), running.exception()
        assert outbox.waiting == 2 and not sent
        broken = False
        await until(lambda: outbox.waiting == 0)
        assert sent == ["one", "two"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
