"""Messages of the library in the words of the command line, and hints for those who know others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from polymargin.cli._command import OPTION_OF

# parameters whose names are no words of English; others are told by the = after them
BARE = ("max_iter", "time_limit", "n_epochs", "memory_limit", "n_jobs", "random_state", "tol")
OTHER_NAMES = {"zero_based": "--index-base", "part": "--split", "cost_matrix": "--costs"}
OTHER_WORDS = {
    "(sklearn.preprocessing.Normalizer)": "(--normalize)",
    "(sklearn.preprocessing.StandardScaler or MaxAbsScaler)": "(--scale standard or maxabs)",
}
_NO_WORD = r"""(?<![-.'"/\w])"""  # before it: nothing that makes it a part of something else
_VALUE = r"""(?:'[^']*'|"[^"]*"|\[[^]]*\]|[^\s,;:.)]+(?:\.[^\s,;:.)]+)*)?"""

# options of LIBLINEAR's and LIBSVM's programs that are none here
OF_LIBLINEAR = {
    "-s": "LIBLINEAR's -s is --loss here: -s 4 is --loss crammer_singer, the default; -s 3 "
    "one_vs_rest, -s 1 and -s 2 one_vs_rest_squared, and nearest to -s 0 and -s 7 is softmax",
    "-t": "LIBSVM's -t is --kernel here: linear, poly, rbf or sigmoid",
    "-g": "LIBSVM's -g is --gamma here",
    "-d": "LIBSVM's -d is --degree here",
    "-r": "LIBSVM's -r is --coef0 here",
    "-m": "LIBSVM's -m is --cache-size here",
    "-b": "LIBLINEAR's and LIBSVM's -b 1 is --probability here, and --proba for predictions",
    "-B": "LIBLINEAR's -B is --intercept-scaling here, 1 unless --no-intercept is given",
    "-v": "LIBLINEAR's -v is --cv here",
    "-w": "LIBLINEAR's -w1 2 is --weight 1=2 here",
}


def in_options(message: str) -> str:
    """What the library says about parameters, about options."""
    for theirs, ours in OTHER_WORDS.items():
        message = message.replace(theirs, ours)
    names = OPTION_OF | OTHER_NAMES

    def option(found: re.Match[str]) -> str:
        value = found[2].strip("'\"")
        return f"{names[found[1]]} {value}".rstrip()

    known = "|".join(sorted(names, key=len, reverse=True))
    message = re.sub(rf"{_NO_WORD}({known})=({_VALUE})", option, message)
    bare = "|".join(name for name in BARE if name in names)
    if not bare:
        return message
    return re.sub(rf"{_NO_WORD}({bare})\b", lambda found: names[found[1]], message)


def hint_for(option: str, arguments: Sequence[str]) -> str | None:
    """What an option that does not exist is called here, for who comes from LIBLINEAR."""
    return OF_LIBLINEAR.get(option) if arguments[:1] == ["train"] else None
