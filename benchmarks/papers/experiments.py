"""The experiments by name: which paper, what it is called in the page, how many tables it shows.

The prose of an experiment is in its own module: ``SETUP`` says what was done and where that is not
what the paper did, ``REASONS`` (claim: why) explains claims that do not hold, where the reason is
known, and ``REDUCED`` why its whole protocol is not run. None has a measured figure in it: those
come from the result files.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

PAPERS = {
    "blondel": "Blondel, Fujino and Ueda 2014",
    "keerthi": "Keerthi et al. 2008",
    "walrus": "Wang and Scott 2021 (Walrus)",
    "lapin": "Lapin, Hein and Schiele 2015",
    "larank": "Bordes et al. 2007 (LaRank)",
}
ALL = 1000  # tables


@dataclass(frozen=True)
class Experiment:
    """What the page needs to know.

    Attributes
    ----------
    title : str
        Heading of the section.
    tables : int
        How many of the tables in ``NAME.md`` stand in the page, from the first on.
    ours : bool
        What it states is a check of ours, not a claim of the paper.
    """

    title: str
    tables: int = 0
    ours: bool = False


EXPERIMENTS = {  # in the order of the page, each paper in one piece
    "blondel_table1": Experiment("Table I: the data", ALL, ours=True),
    "blondel_table2": Experiment("Table II: few passes", 1),
    "blondel_figure1": Experiment("Figure 1: convergence"),
    "blondel_figure2": Experiment("Figure 2: the number of classes"),
    "blondel_figures3_4": Experiment("Figures 3 and 4: exact or nearly exact", 2),
    "keerthi_section2": Experiment("Section 2: which example comes next, and when to stop", ALL),
    "keerthi_figures1_4": Experiment("Figures 1 and 4: shrinking and cooling", ALL),
    "keerthi_figures2_3": Experiment("Figures 2 and 3: SDM, EG and cutting planes"),
    "keerthi_figure5": Experiment("Figure 5: one-vs-rest on the way"),
    "keerthi_tables": Experiment("Tables 4.2 and 4.3: three losses with C tuned for each", ALL),
    "walrus_table1": Experiment("Table 1: the data", ALL, ours=True),
    "walrus_figure1": Experiment("Figure 1: objectives on the way"),
    "walrus_figure2": Experiment("Figure 2: Walrus against greedy steps", 1),
    "walrus_convergence": Experiment("Theorem 3.6: linear convergence"),
    "walrus_table7": Experiment("Table 7: stopping early in cross-validation", ALL),
    "walrus_tables8_9": Experiment("Tables 8 and 9: general-purpose QP solvers", ALL),
    "lapin_table1": Experiment("Table 1 in spirit: top-k accuracy", ALL),
    "lapin_projection": Experiment("Supplement: the top-k projection"),
    "larank_table1": Experiment("Table 1: the data and the settings", ALL, ours=True),
    "larank_scale": Experiment("For table 1: the scale of mnist's pixels", ours=True),
    "larank_table2": Experiment("Tables 2 and 3: LaRank and batch solvers", ALL),
    "larank_figures": Experiment("Figures 1 and 2: error against kernel evaluations"),
}


def paper_of(name: str) -> str:
    """Title of the paper an experiment belongs to."""
    return PAPERS[name.split("_")[0]]


def setup(name: str) -> str:
    """What an experiment does, as one paragraph."""
    module = importlib.import_module(f"benchmarks.papers.{name}")
    return " ".join(module.SETUP.split())


def reasons(name: str) -> dict[str, str]:
    """Why claims of an experiment do not hold, by claim, as far as it is known."""
    module = importlib.import_module(f"benchmarks.papers.{name}")
    known = getattr(module, "REASONS", {})
    return {claim: " ".join(why.split()) for claim, why in known.items()}


def reduced(name: str) -> str:
    """Why the whole protocol of an experiment is not run, if that was said."""
    module = importlib.import_module(f"benchmarks.papers.{name}")
    return " ".join(getattr(module, "REDUCED", "").split())
