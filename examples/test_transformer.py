# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import math

import pytest
from device import DEVICE, SIZE
from transformer import SIZES, Trainer


@pytest.fixture
def trainer() -> Trainer:
    return Trainer(SIZES[SIZE], DEVICE)


def test_first_loss_is_that_of_a_guess(trainer: Trainer) -> None:
    loss = trainer.step()

    assert loss == pytest.approx(math.log(trainer.shape.vocabulary), rel=0.15)


def test_loss_falls_on_a_repeated_batch(trainer: Trainer) -> None:
    losses = [trainer.step() for _ in range(4)]

    assert losses[-1] < losses[0]
