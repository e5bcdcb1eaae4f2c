"""Tables as people have them, each as CSV, JSON lines and Parquet, and what they should mean."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

N = 90
FORMATS = ("csv", "jsonl", "parquet")


@dataclass
class Realistic:
    """A table: `columns` as they are in files, and what a person would make of them."""

    label: str
    labels: list[str]
    columns: dict[str, list]
    numbers: dict[str, list] = field(default_factory=dict)
    categories: dict[str, list] = field(default_factory=dict)
    text: str | None = None
    parquet: dict[str, list] = field(default_factory=dict)  # columns that are others there
    classes: list[str] | None = None  # of the labels, where they are written in several ways

    @property
    def options(self) -> list[str]:
        return ["--label", self.label, *(["--text", self.text] if self.text else [])]

    @property
    def meant(self) -> list[str]:
        """The labels as they are meant."""
        return [label.strip() for label in self.labels]

    def records(self) -> list[dict]:
        everything = {**self.columns, self.label: self.labels}
        return [
            dict(zip(everything, row, strict=True))
            for row in zip(*everything.values(), strict=True)
        ]

    def write(self, folder: Path, suffix: str) -> Path:
        path = folder / f"data.{suffix}"
        if suffix == "csv":
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, [*self.columns, self.label])
                writer.writeheader()
                writer.writerows(self.records())
        elif suffix == "jsonl":
            lines = []
            for i, record in enumerate(self.records()):  # null, or not there at all
                kept = {k: v for k, v in record.items() if v is not None or i % 2}
                lines.append(json.dumps(kept, ensure_ascii=False))
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            import pyarrow
            import pyarrow.parquet

            columns = {**self.columns, **self.parquet, self.label: self.labels}
            pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path


def _base(seed: int) -> tuple[np.random.Generator, list[float], list[str], list[str]]:
    """Two columns that tell the labels, but not quite."""
    rng = np.random.default_rng(seed)
    labels = np.array(["low", "middle", "high"])[np.arange(N) % 3]
    x = (np.arange(N) % 3 + 0.7 * rng.normal(size=N)).round(3).tolist()
    size = [("SML"[i % 3] if rng.random() < 0.8 else "M") for i in range(N)]
    return rng, x, size, labels.tolist()


def _with_gaps(rng: np.random.Generator, values: list, part: float = 0.2) -> list:
    return [None if rng.random() < part else value for value in values]


def _blank(values: list) -> list:
    return ["" if value is None else value for value in values]


def quotes() -> Realistic:
    _, x, size, labels = _base(0)
    names = {"S": 'a "small", one', "M": "middle;\nof two lines", "L": "l'arge\t"}
    size = [names[one] for one in size]
    meant = [one.strip() for one in size]
    return Realistic(
        "label", labels, {'the "x", here': x, "size": size}, {'the "x", here': x}, {"size": meant}
    )


def unicode() -> Realistic:
    _, x, size, labels = _base(1)
    labels = [{"low": "niedrig", "middle": "中くらい", "high": "élevé"}[one] for one in labels]
    size = [{"S": "größer", "M": "🍎", "L": "שלום"}[one] for one in size]
    return Realistic("étiquette", labels, {"größe": x, "尺寸": size}, {"größe": x}, {"尺寸": size})


def missing() -> Realistic:
    rng, x, size, labels = _base(2)
    x, size, more = _with_gaps(rng, x), _with_gaps(rng, size), _with_gaps(rng, [1, 2, 3] * 30)
    columns = {"x": x, "size": size, "count": more, "nothing": [None] * N}
    return Realistic("y", labels, columns, {"x": x, "count": more}, {"size": _blank(size)})


def categories() -> Realistic:
    rng, x, size, labels = _base(3)
    town = [f"town {int(one)}" for one in rng.geometric(0.2, N)]
    member = [bool(i % 3 == 2) if rng.random() < 0.9 else None for i in range(N)]
    written = ["" if one is None else str(one).lower() for one in member]
    columns = {"size": size, "member": member, "town": town, "x": x}
    meant = {"size": size, "member": written, "town": town}
    return Realistic("kind", labels, columns, {"x": x}, meant)


def dates() -> Realistic:
    rng, x, size, labels = _base(4)
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, N)
    columns = {"when": [str(day) for day in days], "x": x, "size": size}
    parquet = {"when": days.astype(object).tolist()}
    return Realistic("status", labels, columns, {"x": x}, {"size": size}, parquet=parquet)


def index() -> Realistic:
    _, x, size, labels = _base(5)
    rows = list(range(N))
    columns = {"": rows, "x": x, "size": size, "order id": [7 * i + 3 for i in rows]}
    return Realistic(
        "label", labels, columns, {"x": x}, {"size": size}, parquet={"__index_level_0__": rows}
    )


def thousands() -> Realistic:
    rng, _, size, labels = _base(6)
    price = [int(1000 * (1 + i % 3) + 400 * rng.normal()) for i in range(N)]
    columns = {"price": [f"{one:,}" for one in price], "size": size}
    parquet = {"price": price}
    return Realistic("label", labels, columns, {"price": price}, {"size": size}, parquet=parquet)


def spaces() -> Realistic:
    _, x, size, labels = _base(7)
    labels = [f" {one}" if i % 7 == 0 else one for i, one in enumerate(labels)]
    return Realistic("Product Category", labels, {"x": x, "size": size}, {"x": x}, {"size": size})


def wide() -> Realistic:
    rng, x, _, labels = _base(8)
    numbers = {f"f{j}": rng.normal(size=N).round(4).tolist() for j in range(199)} | {"x": x}
    return Realistic("label", labels, numbers, numbers)


def rare() -> Realistic:
    _, x, size, labels = _base(9)
    labels[4] = labels[50] = "seldom"
    return Realistic("class", labels, {"x": x, "size": size}, {"x": x}, {"size": size})


def text() -> Realistic:
    rng, x, size, labels = _base(10)
    words = {"low": "cheap bad late", "middle": "fair late good", "high": "dear good fast"}
    comment = [" ".join(rng.choice(words[label].split(), 2)) for label in labels]
    comment = [f'{one} "no. {i}", é' for i, one in enumerate(comment)]
    comment = [one if i % 11 else None for i, one in enumerate(comment)]
    columns = {"x": x, "comment": comment, "size": size}
    return Realistic("label", labels, columns, {"x": x}, {"size": size}, text="comment")


ALL = {
    make.__name__: make
    for make in (
        *(quotes, unicode, missing, categories, dates, index),
        *(thousands, spaces, wide, rare, text),
    )
}
