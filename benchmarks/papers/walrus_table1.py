"""Wang and Scott 2021, table 1: the data sets, ours beside the paper's.

    python -m benchmarks.papers.walrus_table1

Sector is not at hand; clinc150 stands in for it. n counts the training rows.
"""

from __future__ import annotations

from benchmarks import datasets
from benchmarks.papers import common
from benchmarks.papers.blondel_table1 import describe, same_data
from benchmarks.papers.study import Study, run

NAME = "walrus_table1"
PAPER = {  # classes, training rows, features; our name
    "DNA": (3, 2_000, 180, "dna"),
    "SATIMAGE": (6, 4_435, 36, "satimage"),
    "MNIST": (10, 60_000, 780, "mnist"),
    "NEWS20": (20, 15_935, 62_061, "news20"),
    "LETTER": (26, 15_000, 16, "letter"),
    "RCV1": (53, 15_564, 47_236, "rcv1_multiclass_sub"),
    "SECTOR": (105, 6_412, 55_197, "clinc150"),
    "ALOI": (1_000, 81_000, 128, "aloi"),
}

SETUP = """
n counts the training rows. Sector is not at hand, clinc150 stands in for it; rcv1_multiclass_sub is
a sample of RCV1, aloi is split otherwise, and mnist has all its pixels, of which the last are
empty. The data are the same if rows, features and classes are.
"""
REASONS = {
    "the data are those of the table (rows, features, classes; ours against the paper's)": """
    this is about our data and no claim of the paper: the others are another split, a sample, a
    stand-in, and in mnist's case the same rows with pixels that are always empty.
    """,
}


def experiment(study: Study) -> None:
    rows, content = [], {}
    checks: dict[str, bool] = {}
    for paper_name, (k, n, d, name) in PAPER.items():
        found = study.cell(name, lambda name=name: describe(datasets.load(name)))
        if found is None:
            continue
        content[name] = found
        ours = (found["classes"], found["n_train"], found["features"])
        cells = [
            f"{mine:,} ({theirs:,}, {mine - theirs:+,})"
            for mine, theirs in zip(ours, (k, n, d), strict=True)
        ]
        rows.append([f"{name} ({paper_name})", *cells])
        checks[name] = ours == (k, n, d)
    header = ["ours (theirs)", "k (paper, difference)", "n", "d"]
    text = "# Table 1: data sets\n\n" + common.markdown_table(header, rows)
    text += "\nmnist here has all 784 pixels (the last ones are empty); "
    text += "clinc150 stands in for SECTOR.\n"
    study.write(text, {"data": content}, [same_data("Wang and Scott, table 1", checks)])


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
