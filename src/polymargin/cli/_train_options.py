"""The options of ``polymargin train``, in the groups of its help page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from polymargin.cli._command import option
from polymargin.cli._errors import CommandError, Exit
from polymargin.cli._training import SCALERS
from polymargin.losses import LOSSES

KERNELS = ["linear", "rbf", "poly", "sigmoid"]


class Ngrams(click.ParamType):
    """``LOW,HIGH``, or one number for both."""

    name = "LOW,HIGH"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        """Give the two numbers."""
        parts = value.split(",")
        try:
            low, high = int(parts[0]), int(parts[-1])
        except ValueError:
            low = high = 0
        if not 1 <= low <= high or len(parts) > 2:
            self.fail(f"{value!r} is not LOW,HIGH such as 1,2", param, ctx)
        return low, high


class Gamma(click.ParamType):
    """A number, or scikit-learn's rule for one."""

    name = "gamma"

    def convert(self, value: Any, param: Any, ctx: Any) -> str | float:
        """Give the number or the name of the rule."""
        return value if value in ("scale", "auto") else Positive().convert(value, param, ctx)


class Positive(click.ParamType):
    """A finite number above zero."""

    name = "NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Give the number."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{value!r} is not a positive number", param, ctx)
        return number


def _data(*names: str, **kwargs: Any) -> Callable[[Any], Any]:
    return option("Data", *names, **kwargs)


def _text(*names: str, **kwargs: Any) -> Callable[[Any], Any]:
    return option("Text", *names, **kwargs)


def _model(*names: str, **kwargs: Any) -> Callable[[Any], Any]:
    return option("Model", *names, **kwargs)


def _training(*names: str, **kwargs: Any) -> Callable[[Any], Any]:
    return option("Training", *names, **kwargs)


_COUNT: dict[str, Any] = {"type": click.IntRange(1), "metavar": "N"}
_SOME: dict[str, Any] = {"type": Positive()}
_PART = click.FloatRange(0, 1, min_open=True, max_open=True)
_WHERE = "[FIELD=]VALUE,..."

OPTIONS = (
    _data("--split", metavar=_WHERE, help="Train on rows with this value. [FIELD: split]"),
    _data("--test", metavar="FILE", help="Labelled examples to evaluate the model on."),
    _data("--test-split", metavar=_WHERE, help="Evaluate on rows with this value."),
    _data("--holdout", type=_PART, metavar="PART", help="Keep this part of the examples for evaluation."),
    _data("--cv", type=click.IntRange(2), metavar="FOLDS", help="Cross-validate; writes a model only with -o."),
    _data("--scale", type=click.Choice(list(SCALERS)), help="Scale the features; kept with the model."),
    _data("--normalize", is_flag=True, help="Scale each example to length 1; kept with the model."),
    _data("--float32", is_flag=True, help="Single precision: half the memory, and faster."),
    _text("--features", type=click.Choice(["tfidf", "hash"]), default="tfidf", help="What text becomes."),
    _text("--ngrams", type=Ngrams(), default="1,1", help="Sequences of so many words."),
    _text("--analyzer", type=click.Choice(["word", "char", "char_wb"]), default="word", help="Of what."),
    _text("--min-df", **_COUNT, default=1, help="Leave out words in fewer texts than this."),
    _text("--max-features", **_COUNT, help="Keep the most frequent words only."),
    _text("--sublinear", is_flag=True, help="Count a word 1 + log(count) times."),
    _text("--hash-bits", type=click.IntRange(1, 30), default=18, metavar="BITS", help="2^BITS hashed features."),
    _model("--loss", type=click.Choice(list(LOSSES)), default="crammer_singer", help="What violations cost."),
    _model("--C", "-c", "c", **_SOME, default=1.0, help="Weight of the loss against the regulariser."),
    _model("--top-k", **_COUNT, help="The k of the top-k losses."),
    _model("--kernel", type=click.Choice(KERNELS), help="Train a kernel machine."),
    _model("--online", is_flag=True, help="Train online (LaRank; rbf unless --kernel), without a certificate."),
    _model("--epochs", **_COUNT, default=1, help="Passes of --online."),
    _model("--gamma", type=Gamma(), metavar="NUMBER|scale|auto", default="scale", help="Of rbf, poly, sigmoid."),
    _model("--degree", **_SOME, default=3, help="Of poly."),
    _model("--coef0", type=float, metavar="NUMBER", default=0.0, help="Of poly and sigmoid."),
    _model("--intercept/--no-intercept", default=True, help="A constant feature (linear models)."),
    _model("--intercept-scaling", **_SOME, default=1.0, help="Its value."),
    _model("--class-weight", type=click.Choice(["balanced"]), help="Give every class the same total."),
    _model("--weight", "weights", multiple=True, metavar="LABEL=WEIGHT", help="Of a class; may be repeated."),
    _training("--tol", "-e", **_SOME, default=1e-3, help="Relative duality gap to reach, certified."),
    _training("--max-iter", **_COUNT, help="Passes at most. [1000; kernel: 10000 working sets]"),
    _training("--time-limit", type=Positive(), metavar="SECONDS", help="Stop with the best certified model."),
    _training("--n-jobs", type=int, metavar="N", help="Threads; -1 for all cores. [1]"),
    _training("--cache-size", type=Positive(), metavar="MB", default=200.0, help="For kernel values."),
    _training("--seed", type=click.IntRange(0), metavar="N", default=0, help="Of the order of passes, and of splits."),
    option("Output", "-o", "--output", "target", metavar="FILE", help="The model. [the data's name, .pmz]"),
    option("Output", "--report", metavar="FILE", help="Write an HTML report."),
)  # fmt: skip


def train_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options to a command."""
    for decorator in reversed(OPTIONS):
        function = decorator(function)
    return function


def _linear(options: dict[str, Any]) -> bool:
    return options["kernel"] is None and not options["online"]


# options, when they count, and what they need then
NEEDS: tuple[tuple[tuple[str, ...], Callable[[dict[str, Any]], bool], str], ...] = (
    (("gamma", "degree", "coef0", "cache_size"), lambda o: not _linear(o), "--kernel or --online"),
    (("intercept", "intercept_scaling"), _linear, "a linear model"),
    (("top_k",), lambda o: o["loss"].startswith("top_k"), "--loss top_k_alpha or top_k_beta"),
    (("epochs",), lambda o: o["online"], "--online"),
    (("tol", "max_iter", "time_limit"), lambda o: not o["online"], "training without --online"),
    (("class_weight", "weights"), lambda o: not o["online"], "training without --online"),
    (("loss",), lambda o: not o["online"], "training without --online"),
    (("hash_bits",), lambda o: o["features"] == "hash", "--features hash"),
    (("min_df", "max_features"), lambda o: o["features"] == "tfidf", "--features tfidf"),
)
TEXT_ONLY = ("features", "ngrams", "analyzer", "min_df", "max_features", "sublinear", "hash_bits")


def given_options() -> set[str]:
    """Names of the options that were written on the command line."""
    context = click.get_current_context()
    written = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is written}


def check_used(options: dict[str, Any], given: set[str]) -> None:
    """Refuse options that would silently count for nothing."""
    for names, counts, needed in NEEDS:
        for name in names:
            if name in given and not counts(options):
                raise CommandError(f"{_written(name)} needs {needed}", Exit.USAGE)


def check_text_options(given: set[str], source: str) -> None:
    """Refuse options for text where there is none."""
    for name in TEXT_ONLY:
        if name in given:
            raise CommandError(
                f"{_written(name)} is for text, but {source} holds numbers", Exit.USAGE
            )


def _written(name: str) -> str:
    special = {"weights": "--weight", "intercept": "--intercept/--no-intercept"}
    return special.get(name, f"--{name.replace('_', '-')}")
