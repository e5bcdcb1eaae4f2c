"""
From a file of texts to a model
===============================

A JSON object per line, with a text and a label; a pipeline of tf-idf and a linear machine; and
a model file, which holds the words too and cannot run code. The picture shows which words speak
for each class.
"""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import polymargin
from polymargin import LinearMulticlassSVC
from polymargin.io import read_data

WORDS = {
    "card": "card pin chip lost stolen contactless expired declined",
    "transfer": "transfer iban recipient pending arrived wire sent abroad",
    "exchange": "euro dollar currency rate convert exchange yen fee",
    "account": "account close open password name address verify login",
}
COMMON = [
    "my",
    "the",
    "a",
    "is",
    "was",
    "when",
    "how",
    "can",
    "please",
    "with",
    "to",
    "not",
    "still",
]

ODDS = np.arange(8, 0, -1) / 36  # the first words of a class are the most frequent

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "messages.jsonl"
rng = np.random.default_rng(0)
with path.open("w") as file:
    for number in range(2000):
        label = list(WORDS)[number % len(WORDS)]
        other = list(WORDS)[rng.integers(len(WORDS))]
        words = [*rng.choice(COMMON, 5), *rng.choice(WORDS[label].split(), 2, p=ODDS)]
        words += [*rng.choice(WORDS[other].split(), 1)]
        rng.shuffle(words)
        split = "train" if number < 1600 else "test"
        file.write(json.dumps({"text": " ".join(words), "label": label, "split": split}) + "\n")

train = read_data(path, where={"split": "train"})
test = read_data(path, where={"split": "test"})
model = make_pipeline(TfidfVectorizer(), LinearMulticlassSVC(random_state=0))
model.fit(train.text, train.y)

polymargin.save(model, Path(folder.name) / "messages.pmz")
model = polymargin.load(Path(folder.name) / "messages.pmz")
print(f"accuracy {model.score(test.text, test.y):.1%}")

# %%
# The largest weights of each class.

names = model[0].get_feature_names_out()
figure, panels = plt.subplots(1, 4, figsize=(10, 3.2), layout="constrained", sharex=True)
for panel, label, weights in zip(panels, model.classes_, model[-1].coef_, strict=True):
    best = np.argsort(weights)[-8:]
    panel.barh(names[best], weights[best])
    panel.set_title(label)
figure.supxlabel("weight")
plt.show()
folder.cleanup()
