"""A quick share of the random views of on_device.py."""

import random

import pytest


@pytest.mark.gpu
def test_random_views_have_every_bit():
    from on_device import check_once

    rng = random.Random(1)
    for _ in range(60):
        check_once(rng)
