"""From pairs to a mended data set, cell by cell; editors that know `# %%` open it as a notebook."""

# %% [markdown]
# ## Pairs with a known truth
# A small world of pictures is drawn, and 40 % of its training pairs are mismatched on purpose, so that every verdict
# can be compared with the truth. With data of your own, `"scenes"` is a table, a folder or a Parquet file.

# %%
import tempfile
from pathlib import Path

import numpy as np

import mispair as mp

folder = Path(tempfile.mkdtemp())
run = mp.train(
    "scenes",
    noise=0.4,
    epochs=8,
    out=folder / "run",
    options={"data.scenes.pictures": 400, "model.embed": 128, "method.warmup_epochs": 2, "train.lr": 0.003},
    quiet=True,
)

# %% [markdown]
# ## What was learned
# Recalls on the clean test split, and the history of the epochs.

# %%
print({name: round(value, 1) for name, value in run.metrics["test"].items() if name.endswith(("_r1", "rsum"))})
print([round(epoch["dev"]["rsum"]) for epoch in run.history])

# %% [markdown]
# ## Which pairs are wrong
# Every training pair is judged. `truth=True` compares with the mismatches that were injected.

# %%
verdicts = mp.audit(run, folds=0, truth=True)
print(verdicts.summary())
for verdict in verdicts.worst(3):
    print(verdict.image_id, "|", verdict.caption, "| rather:", verdict.proposed_caption)

# %% [markdown]
# ## Search with it
# The model is at hand: which pictures of the test split fit a sentence?

# %%
test = run.open_split("test")
features, _ = test.image_batch(np.arange(50))
scores = run.score(features, ["a red circle", "two blue squares"])
print(scores.shape, "best pictures:", scores.argmax(0))

# %% [markdown]
# ## A page to send

# %%
verdicts.save(folder / "audit")
print(mp.make_report(folder / "audit", folder / "report.html").stat().st_size > 10_000)
