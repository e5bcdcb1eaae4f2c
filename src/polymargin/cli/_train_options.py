"""The options of ``polymargin train``, in the groups of its help page."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import click

from polymargin.cli._command import setting
from polymargin.cli._data import WHERE, DataOptions
from polymargin.cli._errors import CommandError, Exit
from polymargin.cli._output import Output
from polymargin.losses import LOSSES, NAMES_ELSEWHERE, loss_class

KERNELS = ["linear", "rbf", "poly", "sigmoid"]
COARSE = 0.05  # a tolerance that was meant for another program
SCALERS = ["standard", "minmax", "maxabs", "none"]
TOP_K_LOSSES = [name for name in LOSSES if "top_k" in loss_class(name).parameters]
WITH_COSTS = [name for name in LOSSES if "margins" in loss_class(name).parameters]
SMOOTHED = [name for name in LOSSES if "smoothing" in loss_class(name).parameters]


def ngrams(value: str) -> tuple[int, int]:
    """``LOW,HIGH``, or one number for both."""
    parts = value.split(",")
    try:
        low, high = int(parts[0]), int(parts[-1])
    except ValueError:
        low = high = 0
    if not 1 <= low <= high or len(parts) > 2:
        raise click.BadParameter(f"{value!r} is not LOW,HIGH such as 1,2")
    return low, high


class Number(click.ParamType):
    """A finite number, above zero unless said otherwise, or one of some words."""

    name = "NUMBER"

    def __init__(self, *words: str, positive: bool = True) -> None:
        self.words, self.positive = words, positive

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | float:
        """Give the number or the word."""
        if value in self.words:
            return value
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (self.positive and number <= 0):
            kind = "positive" if self.positive else "finite"
            self.fail(f"{value!r} is not a {kind} number", param, ctx)
        return number


class LossName(click.Choice[str]):
    """A loss; what others call it is refused with a hint."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give the name."""
        if value in NAMES_ELSEWHERE:
            self.fail(f"{value!r} is no loss: {NAMES_ELSEWHERE[value]}", param, ctx)
        return super().convert(value, param, ctx)


_data, _text, _model, _training, _output = (
    partial(setting, group) for group in ("Data", "Text", "Model", "Training", "Output")
)
_count = click.IntRange(1)
_part = click.FloatRange(0, 1, min_open=True, max_open=True)


# fmt: off
@dataclass(frozen=True)
class TrainOptions(DataOptions):
    """All that ``polymargin train`` takes beside its data; parameters of a model by their names."""

    columns: tuple[str, ...] = _data("--columns", multiple=True, metavar="NAME,...", help="Columns of a table to use. [all]")
    drop: tuple[str, ...] = _data("--drop", multiple=True, metavar="NAME,...", help="Columns of a table to leave out.")
    dates: str = _data("--dates", type=click.Choice(["drop", "parts"]), default="drop", help="Leave columns of dates out, or make year, month, day, weekday of them.")
    test: str | None = _data("--test", metavar="FILE", help="Labelled examples to evaluate the model on.")
    test_split: str | None = _data("--test-split", metavar=WHERE, help="Evaluate on rows with this value.")
    holdout: float | None = _data("--holdout", type=_part, metavar="PART", help="Keep this part of the examples for evaluation.")
    cv: int | None = _data("--cv", type=click.IntRange(2), metavar="FOLDS", help="Cross-validate; writes a model only with -o.")
    scale: str | None = _data("--scale", type=click.Choice(SCALERS), help="Scale the features; kept with the model. [tables: standard]")
    normalize: bool = _data("--normalize", is_flag=True, help="Scale each example to length 1; kept with the model.")
    float32: bool = _data("--float32", is_flag=True, help="Single precision: half the memory, and faster.")
    features: str = _text("--features", type=click.Choice(["tfidf", "hash"]), default="tfidf", help="What text becomes.")
    ngrams: tuple[int, int] = _text("--ngrams", type=ngrams, metavar="LOW,HIGH", default="1,1", help="Sequences of so many words.")
    analyzer: str = _text("--analyzer", type=click.Choice(["word", "char", "char_wb"]), default="word", help="Of what.")
    min_df: int = _text("--min-df", type=_count, metavar="N", default=1, help="Leave out words in fewer texts than this.")
    max_features: int | None = _text("--max-features", type=_count, metavar="N", help="Keep the most frequent words only.")
    sublinear: bool = _text("--sublinear", is_flag=True, help="Count a word 1 + log(count) times.")
    hash_bits: int = _text("--hash-bits", type=click.IntRange(1, 30), default=18, metavar="BITS", help="2^BITS hashed features.")
    loss: str = _model("--loss", type=LossName(list(LOSSES)), default="crammer_singer", help="What violations cost.")
    C: float = _model("--C", "-c", type=Number(), default=1.0, help="Weight of the loss against the regulariser.")
    top_k: int | None = _model("--top-k", type=_count, metavar="N", help="The k of the top-k losses.")
    smoothing: float = _model("--smoothing", type=Number(positive=False), metavar="NUMBER", default=0.0, help="Makes a hinge loss differentiable.")
    kernel: str | None = _model("--kernel", type=click.Choice(KERNELS), help="Train a kernel machine.")
    online: bool = _model("--online", is_flag=True, help="Train online (LaRank; rbf unless --kernel), without a certificate.")
    n_epochs: int = _model("--epochs", type=_count, metavar="N", default=1, help="Passes of --online.")
    gamma: str | float = _model("--gamma", type=Number("scale", "auto"), metavar="NUMBER|scale|auto", default="scale", help="Of rbf, poly, sigmoid.")
    degree: float = _model("--degree", type=Number(), default=3, help="Of poly.")
    coef0: float = _model("--coef0", type=Number(positive=False), metavar="NUMBER", default=0.0, help="Of poly and sigmoid.")
    fit_intercept: bool = _model("--intercept/--no-intercept", default=True, help="A constant feature (linear models).")
    intercept_scaling: float = _model("--intercept-scaling", type=Number(), default=1.0, help="Its value.")
    class_weight: str | None = _model("--class-weight", type=click.Choice(["balanced"]), help="Give every class the same total.")
    weights: tuple[str, ...] = _model("--weight", multiple=True, metavar="LABEL=WEIGHT", help="Of a class; may be repeated.")
    costs: str | None = _model("--costs", metavar="FILE", help="CSV of what confusions cost, by true (rows) and predicted label.")
    probability: bool = _model("--probability", is_flag=True, help="Fit a temperature, for predict --proba.")
    tol: float = _training("--tol", "-e", type=Number(), default=1e-3, help="Relative duality gap to reach, certified.")
    max_iter: int | None = _training("--max-iter", type=_count, metavar="N", help="Passes at most. [1000; kernel: 10000 working sets]")
    time_limit: float | None = _training("--time-limit", type=Number(), metavar="SECONDS", help="Stop with the best certified model.")
    checkpoint: str | None = _training("--checkpoint", metavar="FILE", help="Save the state now and then; go on from it after a crash.")
    memory_limit: str | None = _training("--memory", metavar="SIZE", help="Hold no more data than this, such as 2GB; reads the rest in blocks.")
    n_jobs: int | None = _training("--n-jobs", type=int, metavar="N", help="Threads; -1 for all cores. [1]")
    cache_size: float = _training("--cache-size", type=Number(), metavar="MB", default=200.0, help="For kernel values.")
    random_state: int = _training("--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", default=0, help="Of the order of passes, and of splits.")
    target: str | None = _output("-o", "--output", metavar="FILE", help="The model. [the data's name, .pmz]")
    report: str | None = _output("--report", metavar="FILE", help="Write an HTML report.")
# fmt: on

    @property
    def linear(self) -> bool:
        """Whether a linear model is to be trained."""
        return self.kernel is None and not self.online


# options, when they count, and what they need then
Counts = Callable[[TrainOptions], bool]
NEEDS: tuple[tuple[tuple[str, ...], Counts, str], ...] = (
    (("gamma", "degree", "coef0", "cache_size"), lambda o: not o.linear, "--kernel or --online"),
    (("fit_intercept", "intercept_scaling", "checkpoint", "memory_limit"), lambda o: o.linear, "a linear model"),
    (("top_k",), lambda o: o.loss in TOP_K_LOSSES, f"--loss {' or '.join(TOP_K_LOSSES)}"),
    (("n_epochs",), lambda o: o.online, "--online"),
    (("smoothing",), lambda o: o.loss in SMOOTHED, f"--loss {' or '.join(SMOOTHED)}"),
    (
        ("tol", "max_iter", "time_limit", "class_weight", "weights", "loss", "probability"),
        lambda o: not o.online,
        "training without --online",
    ),
    (("costs",), lambda o: o.loss in WITH_COSTS, f"--loss {' or '.join(WITH_COSTS)}"),
    (("hash_bits",), lambda o: o.features == "hash", "--features hash"),
    (("min_df", "max_features"), lambda o: o.features == "tfidf", "--features tfidf"),
)
TEXT_ONLY = [each.name for each in fields(TrainOptions) if each.metadata["group"] == "Text"]


def written_options() -> dict[str, str]:
    """The options on the command line, by name: how they are written."""
    context = click.get_current_context()
    source = click.core.ParameterSource.COMMANDLINE
    return {
        one.name: "/".join([one.opts[0], *one.secondary_opts])
        for one in context.command.params
        if one.name and context.get_parameter_source(one.name) is source
    }


def check_used(options: TrainOptions, written: dict[str, str], output: Output) -> None:
    """Refuse options that would silently count for nothing, or that lack another."""
    for names, counts, needed in NEEDS:
        for name in names:
            if name in written and not counts(options):
                raise CommandError(f"{written[name]} needs {needed}", Exit.USAGE)
    if options.loss in TOP_K_LOSSES and options.top_k is None:
        raise CommandError(f"--loss {options.loss} needs --top-k, for example 5", Exit.USAGE)
    if options.tol >= COARSE:
        output.warn(
            f"--tol {options.tol:g} is a relative duality gap of {100 * options.tol:g} %, which is "
            "coarse, and not the tolerance of LIBLINEAR's -e; left out, it is 1e-3"
        )
    if options.n_jobs == 0:
        raise CommandError("--n-jobs is a number of threads, or -1 for all cores", Exit.USAGE)
    if options.memory_limit:
        for name in ("scale", "normalize", "holdout", "cv", "split"):
            if name in written:
                raise CommandError(
                    f"{written[name]} needs all data in memory: leave --memory out", Exit.USAGE
                )
    if options.weights and options.class_weight:
        raise CommandError("--class-weight and --weight exclude each other", Exit.USAGE)


def check_table_options(written: dict[str, str], source: str, kind: str) -> None:
    """Refuse options for tables where there is none."""
    for name in ("columns", "drop", "dates"):
        if name in written:
            reason = f"{written[name]} is for tables, but {source} is in {kind} format"
            raise CommandError(reason, Exit.USAGE)


def check_text_options(written: dict[str, str], source: str) -> None:
    """Refuse options for text where there is none."""
    for name in TEXT_ONLY:
        if name in written:
            raise CommandError(f"{written[name]} is for text, but {source} holds numbers", Exit.USAGE)
