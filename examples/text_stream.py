"""Learn to classify texts from a stream, in one pass and in constant memory.

    python examples/text_stream.py texts.jsonl.gz        # lines {"text": ..., "label": ...}
    python examples/text_stream.py --generate 16000      # made-up texts, the size of 20 newsgroups
    python examples/text_stream.py --dicts texts.jsonl.gz

Texts are vectorised on the fly by hashing, so that there is no vocabulary to build or to keep, and
every batch is forgotten once the model has seen it. Labels may turn up at any time. Each batch is
predicted before it is learned: the accuracy printed is that on texts the model had not seen.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from polymargin import LinearMulticlassSVC, StreamSolver

N_FEATURES = 2**16  # the memory of the model: N_FEATURES x classes x 4 bytes, twice with averages

Text = tuple[str, str]  # text, label


def read_lines(path: str) -> Iterator[Text]:
    """Texts and labels of a file of JSON lines, which may be gzipped; its lines as they come."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
        for line in lines:
            record = json.loads(line)
            yield record["text"], record["label"]


def shuffled(texts: Iterable[Text], buffer: int, seed: int = 0) -> Iterator[Text]:
    """Mix a stream within a buffer: files are often sorted by label, streams seldom are."""
    rng = np.random.default_rng(seed)
    held: list[Text] = []
    for text in texts:
        if len(held) < buffer:
            held.append(text)
            continue
        place = int(rng.integers(buffer))
        held[place], text = text, held[place]
        yield text
    rng.shuffle(held)
    yield from held


def generate(n: int, n_classes: int = 20, n_words: int = 150, seed: int = 0) -> Iterator[Text]:
    """Made-up texts: a fifth of the words belong to the topic, the others to the language."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        topic = int(rng.integers(n_classes))
        common = rng.zipf(1.3, n_words) % 50_000
        own = rng.random(n_words) < 0.2
        words = np.where(own, 100_000 + 500 * topic + rng.zipf(1.3, n_words) % 500, common)
        yield " ".join(f"w{word}" for word in words), f"topic {topic}"


def in_batches(stream: Iterator[Text], size: int) -> Iterator[tuple[list[str], list[str]]]:
    """Lists of texts and of labels."""
    while batch := list(islice(stream, size)):
        texts, labels = zip(*batch, strict=True)
        yield list(texts), list(labels)


def vectorize_texts(texts: list[str]) -> object:
    """Unit rows of hashed words and pairs of words."""
    vectorizer = HashingVectorizer(
        n_features=N_FEATURES, ngram_range=(1, 2), alternate_sign=False, dtype=np.float32
    )
    return vectorizer.transform(texts)


def vectorize_dicts(texts: list[str]) -> object:
    """The same from dicts of named values: whatever features a record has, here word counts."""
    records = [Counter(text.lower().split()) for text in texts]
    return normalize(FeatureHasher(N_FEATURES, dtype=np.float32).transform(records))


def main(argv: Sequence[str] | None = None) -> float:
    """Run the stream; returns the accuracy over its second half."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", nargs="?", help="JSON lines with text and label, also .gz")
    parser.add_argument("--generate", type=int, default=2000, help="texts to make up without path")
    parser.add_argument("--dicts", action="store_true", help="FeatureHasher of dicts")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--C", type=float, default=1.0)
    options = parser.parse_args(argv)
    stream = read_lines(options.path) if options.path else generate(options.generate)
    vectorize = vectorize_dicts if options.dicts else vectorize_texts
    clf = LinearMulticlassSVC(C=options.C, stream=StreamSolver(average=True), random_state=0)
    right: list[bool] = []
    for texts, labels in in_batches(shuffled(stream, buffer=20_000), options.batch):
        X = vectorize(texts)
        if right:
            right += list(clf.predict(X) == np.array(labels))
        else:  # nothing to predict with yet
            right = [False] * len(labels)
        clf.partial_fit(X, labels)
        done = len(right) // 2000 > (len(right) - len(labels)) // 2000
        if done:
            recent = 100 * np.mean(right[-2000:])
            print(f"{len(right):7d} texts  {len(clf.classes_):4d} classes  {recent:5.1f} % right")
    half = float(np.mean(right[len(right) // 2 :]))
    print(f"{len(right)} texts, {len(clf.classes_)} classes; second half: {100 * half:.1f} % right")
    return half


if __name__ == "__main__":
    main()
