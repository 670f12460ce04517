"""Newer figures stand beside those that a question finds."""

from __future__ import annotations

import pytest

from gateway.memory.answers.figures import newer_figures

BUILD = "how long does my build take?", "the build takes 20 minutes on my laptop"
RENT = "how much is the rent?", "the rent is 875 euros a month"


@pytest.mark.parametrize(
    ("asked", "told", "later", "changes"),
    [
        (*BUILD, ["try ccache?", "ccache helped, 3 minutes now", "thanks"], [1]),
        (*BUILD, ["it's down to 4 minutes", "hm it's 5 minutes now"], [0, 1]),
        (*RENT, ["they put it up to 900", "the deposit is 1,009 quid"], [0]),
        ("how much is the net?", "the net costs 400 kronor", ["hm found one for 250 on blocket"], [0]),
        ("how much does Olive weigh?", "Olive weighs 4.2 kg", ["she weighs 4.0 now"], [0]),
        ("phòng giá bao nhiêu vậy?", "phòng giá 3 triệu rưỡi", ["gọi cô rồi, cô bớt còn 3 triệu"], [0]),
        ("lương mình bao nhiêu?", "lương 25 nghìn một giờ", ["quán tăng lương lên 28 nghìn"], [0]),
        # The drive has the minutes since.
        (*BUILD, ["the drive takes 30 minutes", "25 minutes now"], []),
        (*RENT, ["the flat has 3 rooms", "we can do 1200 now"], []),
        (*BUILD, ["the cake takes 30 minutes now"], []),
        (*BUILD, ["if it were 3 minutes now i'd be glad"], []),
        (*BUILD, ["i have 3 cats now"], []),
        ("who broke the build?", BUILD[1], ["3 minutes now"], []),
        ("how long does my build take?", "the build is slow", ["3 minutes now"], []),
    ],
)
def test_newer_figures(asked: str, told: str, later: list[str], changes: list[int]) -> None:
    assert newer_figures(asked, told, later) == changes
