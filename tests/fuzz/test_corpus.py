"""Every kept input of fuzzing, and sound ones cut and bent: an error of ours, or what it should be.

``make fuzz`` finds more; what it finds is kept in ``corpus`` when the code is mended.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fuzz import seeds, targets

CORPUS = Path(__file__).with_name("corpus")
KEPT = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))


@pytest.mark.parametrize("name", KEPT)
def test_what_was_found_stays_mended(name):
    targets.TARGETS[name.partition("/")[0]]((CORPUS / name).read_bytes())


def test_the_corpus_is_small_and_of_known_targets():
    assert {name.partition("/")[0] for name in KEPT} <= set(targets.TARGETS)
    assert sum((CORPUS / name).stat().st_size for name in KEPT) < 100_000


@pytest.fixture(scope="module")
def sound():
    return seeds.seeds()


@pytest.mark.parametrize("target", targets.TARGETS)
def test_sound_inputs_cut_and_bent(target, sound):
    """Seeds as they are, then cut, with bytes flipped, removed and repeated, from a fixed seed."""
    rng, run = np.random.default_rng(0), targets.TARGETS[target]
    for content in sound[target]:
        run(content)
        for _ in range(12):
            bent = bytearray(content)
            for _ in range(rng.integers(1, 4)):
                at, length = rng.integers(len(bent)), int(rng.integers(1, 9))
                match rng.integers(4):
                    case 0:
                        bent[at] ^= 1 << int(rng.integers(8))
                    case 1:
                        del bent[at : at + length]
                    case 2:
                        bent[at:at] = bent[at : at + length]
                    case 3:
                        bent[at] = rng.choice(list(b'0-9eE{}[]",:\n\xff\x00'))
                bent = bent or bytearray(b"0")
            run(bytes(bent))


def test_a_wrong_answer_is_noticed():
    """The targets are able to fail: a reader that raises anything else is a finding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "read_data", lambda *what, **how: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            targets.TARGETS["csv"](b"a,b\n1,2\n")
