from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.base.ranking import K, fuse

RANKINGS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8), max_size=4)


def test_the_scores_are_those_of_the_paper() -> None:
    assert K == 60
    assert fuse([["a", "b"], ["b", "c"]]) == [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62)]


def test_one_ranking_keeps_its_order_and_two_good_places_beat_one_best() -> None:
    assert [item for item, _ in fuse([["c", "a", "b"], []])] == ["c", "a", "b"]
    assert fuse([["x", "both"], ["y", "both"]])[0][0] == "both"
    assert fuse([]) == []


@given(RANKINGS)
def test_every_item_comes_once_and_scores_fall(rankings: list[list[str]]) -> None:
    fused = fuse(rankings)
    assert sorted(item for item, _ in fused) == sorted({item for ranking in rankings for item in ranking})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= len(rankings) / 61 for score in scores)


@given(RANKINGS, st.integers(0, 3))
def test_a_better_place_never_hurts(rankings: list[list[str]], which: int) -> None:
    if which >= len(rankings) or len(set(rankings[which])) < 2:
        return
    distinct = list(dict.fromkeys(rankings[which]))
    raised = distinct[-1]
    better = [*rankings[:which], [raised, *distinct[:-1]], *rankings[which + 1 :]]
    assert dict(fuse(better))[raised] > dict(fuse(rankings))[raised]
