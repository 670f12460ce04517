"""Shortlists contain every token that the sampler chain could choose, and it chooses the same one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model_host import protocol
from model_host.engine.engine import Engine, Span
from model_host.engine.sampling import Shortlist

LOGITS = arrays.arrays(
    np.float32,
    st.integers(1, 400),
    elements=st.one_of(st.floats(-60, 60, width=32), st.just(-np.inf), st.just(7.0)),
)


@given(st.lists(LOGITS, min_size=1, max_size=5), st.integers(1, 50))
def test_the_likeliest_are_in_the_list(rows: list[np.ndarray], wanted: int) -> None:
    shortlist = Shortlist(wanted)
    for logits in rows:
        ids = shortlist.find(logits)
        if ids is None:
            assert not np.isfinite(logits.max()) or np.isfinite(logits).sum() > 16 * wanted
            continue
        assert list(ids) == sorted(set(ids))
        left_out = np.delete(logits, ids)
        if left_out.size and np.isfinite(left_out.max()):
            assert len(ids) >= wanted
            assert left_out.max() < logits[ids].min()


def test_the_list_becomes_short_and_stays_long_enough() -> None:
    random = np.random.default_rng(1)
    shortlist = Shortlist(40)
    lengths = []
    for spread in [0.3] * 60 + [4.0] * 60:
        ids = shortlist.find(random.normal(0, spread, 50_000).astype(np.float32))
        lengths.append(50_000 if ids is None else len(ids))
    assert np.median(lengths[40:60]) <= 16 * 40
    assert min(lengths) >= 40
    assert np.median(lengths[100:]) <= 16 * 40


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_list_where_logits_are_no_numbers(value: float) -> None:
    assert Shortlist(3).find(np.full(100, value, np.float32)) is None


def test_a_list_pays_when_it_is_short_and_the_vocabulary_large() -> None:
    assert [Shortlist.pays(wanted, 262_144) for wanted in (0, 1, 64, 5000)] == [False, True, True, False]
    assert not Shortlist.pays(64, 5120)


@pytest.fixture
def short_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use shortlists even with the small vocabulary of the tiny model."""
    monkeypatch.setattr("model_host.engine.sampling.LARGE_VOCABULARY", 1)


@pytest.mark.usefixtures("short_lists")
@pytest.mark.parametrize("ignore_eos", [False, True])
@pytest.mark.parametrize(
    "asked",
    [
        protocol.Sampling(top_k=8, seed=5),
        protocol.Sampling(top_k=8, seed=5, temperature=0.0),
        protocol.Sampling(top_k=8, seed=5, temperature=2.0, top_p=1.0, min_p=0.0),
        protocol.Sampling(top_k=8, seed=5, temperature=0.0, repeat_penalty=1.5),
        protocol.Sampling(
            top_k=8, seed=5, presence_penalty=1.0, penalty_last_n=4, logit_bias={7: -2.0, 40: -9.0}
        ),
    ],
)
def test_the_same_tokens_are_chosen_as_from_the_whole_vocabulary(
    tiny_model: Path, asked: protocol.Sampling, ignore_eos: bool
) -> None:
    engine = Engine(
        tiny_model, context=256, sequences=1, outputs=1, chunk=64, threads=1, progress=lambda _: True
    )

    def reply(whole: bool) -> list[int]:
        sampler = engine.sampler(asked, grammar=None, ignore_eos=ignore_eos)
        assert sampler._shortlist is not None
        if whole:
            sampler._shortlist = None
        engine.trim(0, 0)
        tokens = [5, 6, 7]
        _, rows = engine.decode([Span(0, 0, tokens, 1)])
        while len(tokens) < 120:
            tokens.append(sampler.sample(rows[0], 999))
            _, rows = engine.decode([Span(0, len(tokens) - 1, tokens[-1:], 1)])
        sampler.close()
        return tokens

    assert reply(whole=False) == reply(whole=True)


@pytest.mark.usefixtures("short_lists")
def test_tokens_that_may_rise_are_sought_in_the_whole_vocabulary(tiny_model: Path) -> None:
    engine = Engine(
        tiny_model, context=64, sequences=1, outputs=1, chunk=64, threads=1, progress=lambda _: True
    )

    def has_list(settings: protocol.Sampling) -> bool:
        return engine.sampler(settings, grammar=None, ignore_eos=False)._shortlist is not None

    assert has_list(protocol.Sampling(top_k=8))
    assert has_list(protocol.Sampling(top_k=8, repeat_penalty=1.1, logit_bias={3: -1.0}))
    assert not has_list(protocol.Sampling(top_k=8, repeat_penalty=0.9))
    assert not has_list(protocol.Sampling(top_k=8, presence_penalty=-0.5))
    assert not has_list(protocol.Sampling(top_k=8, logit_bias={3: 1.0}))
    assert not has_list(protocol.Sampling(top_k=0, repeat_penalty=1.1))
    assert has_list(protocol.Sampling(top_k=8, presence_penalty=-0.5, penalty_last_n=0))
