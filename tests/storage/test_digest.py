"""Equal digests mean equal values, types and shapes."""

from __future__ import annotations

import numpy as np

from polymargin.storage import digest_of


def test_what_differs_has_another_digest():
    values = np.arange(6.0)
    parts = [
        (values,),
        (values.reshape(2, 3),),
        (values.astype(np.float32),),
        (np.nextafter(values, 9),),
        (np.zeros(2),),
        (np.zeros(2, np.int64),),
        (values, 1),
        (values, "1"),
        (values[:3], values[3:]),
        (),
    ]
    assert len({digest_of(*one) for one in parts}) == len(parts)


def test_what_is_equal_has_the_same():
    values = np.arange(12.0).reshape(3, 4)
    assert digest_of(values[:, ::2], "a") == digest_of(values[:, ::2].copy(), "a")
    assert digest_of(np.asfortranarray(values)) == digest_of(values)
