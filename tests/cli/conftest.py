"""Small data files of every kind, and a way to run the command in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from polymargin.cli import main

CLASSES = ("red apple", "pear", "Zitrone")


@dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run ``polymargin ARGS`` in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def write_svmlight(path: Path, X: np.ndarray, y: np.ndarray, *, base: int = 1) -> Path:
    lines = []
    for row, label in zip(X, y, strict=True):
        cells = " ".join(f"{j + base}:{row[j]:.17g}" for j in np.flatnonzero(row))
        lines.append(f"{label} {cells}\n")
    path.write_text("".join(lines))
    return path


def write_csv(path: Path, X: np.ndarray, y: np.ndarray, names: list[str] | None = None) -> Path:
    names = names or [f"f{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "label"])]
    lines += [
        ",".join([*(f"{value:.17g}" for value in row), str(label)])
        for row, label in zip(X, y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_jsonl(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    """Three classes of points with some overlap, 4 features, all positive."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    centres = np.array([[2, 1, 1, 1], [1, 2, 1, 1], [1, 1, 2, 1.5]])
    return np.abs(centres[y] + 0.45 * rng.normal(size=(120, 4))).round(6), y + 1


@pytest.fixture
def svm(numbers, tmp_path) -> Path:
    return write_svmlight(tmp_path / "train.svm", *numbers)


@pytest.fixture
def csv(numbers, tmp_path) -> Path:
    X, y = numbers
    return write_csv(tmp_path / "fruit.csv", X, np.array(CLASSES)[y - 1])


@pytest.fixture(scope="session")
def texts() -> list[dict]:
    """Records with text, label and split."""
    rng = np.random.default_rng(1)
    words = {
        "red apple": ["red", "round", "sweet", "apple"],
        "pear": ["green", "long", "soft", "pear"],
        "Zitrone": ["yellow", "sour", "round", "citrus"],
    }
    records = []
    for i in range(90):
        label = CLASSES[i % 3]
        chosen = rng.choice(words[label], 3)
        split = "test" if i >= 66 else "train"
        records.append({"text": " ".join(chosen), "label": label, "split": split})
    return records


@pytest.fixture
def jsonl(texts, tmp_path) -> Path:
    return write_jsonl(tmp_path / "fruit.jsonl", texts)
