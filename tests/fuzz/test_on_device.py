"""A quick share of the random views of on_device.py."""

import random

import pytest


@pytest.mark.gpu
@pytest.mark.parametrize("bits", [32, 64])
def test_random_views_have_every_bit(bits):
    from on_device import check_once, index_bits

    rng = random.Random(bits)
    with index_bits(bits):
        for _ in range(60):
            check_once(rng)
