"""The examples run, and learn."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import datasets

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("options", [[], ["--dicts"]])
def test_text_stream_of_generated_texts(options, capsys):
    assert load("text_stream").main(["--generate", "1000", *options]) > 0.9
    assert "20 classes" in capsys.readouterr().out


def test_text_stream_of_a_file(tmp_path):
    words = {"fruit": "apple pear plum", "tool": "hammer saw drill", "bird": "wren owl kite"}
    path = tmp_path / "texts.jsonl"
    lines = [
        {"text": f"a {words[label]} {i}", "label": label} for i in range(60) for label in words
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert load("text_stream").main([str(path), "--batch", "7"]) > 0.9


def test_text_stream_of_clinc150():
    path = datasets.data_folder() / "clinc150.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    assert load("text_stream").main([str(path)]) > 0.7  # 18 % of the texts are out of scope


def test_beyond_memory(capsys):
    assert load("beyond_memory").main(["--rows", "20000", "--memory", "6MB"]) > 0.9
    assert "20,000 rows, 7 MB on disk" in capsys.readouterr().out


def test_beyond_one_machine(capsys):
    pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")
    arguments = ["--rows", "20000", "--memory", "1GB"]
    assert load("beyond_one_machine").main(arguments) > 0.8
    assert "worker 1 held at most" in capsys.readouterr().out


def test_costs_of_a_taxonomy(capsys):
    example = load("costs_taxonomy")
    change, low, high = example.main(["--generate", "--splits", "3"])
    assert low <= change <= high < 0
    assert "errors within the group" in capsys.readouterr().out
    intents = [one for group in example.DOMAINS.values() for one in group.split()]
    assert len(intents) == len(set(intents)) == 150
    labels = datasets.data_folder() / "clinc150.labels.json"
    if labels.is_file():
        assert set(intents) == set(json.loads(labels.read_text()))


def test_domains_of_clinc150_are_those_of_its_authors():
    """The digest is that of ``data/domains.json`` of github.com/clinc/oos-eval."""
    domains = load("costs_taxonomy").DOMAINS
    pairs = sorted(f"{domain} {intent}" for domain in domains for intent in domains[domain].split())
    assert {len(domains[domain].split()) for domain in domains} == {15} and len(domains) == 10
    assert len({pair.split()[1] for pair in pairs}) == 150
    digest = hashlib.sha256("\n".join(pairs).encode()).hexdigest()
    assert digest == "0cae4974dbd98bcefebbc9cfd156f799013b9b54f5a3de2973c5a9ffd79c9ee9"
