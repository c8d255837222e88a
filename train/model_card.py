"""The model card: what a model is, in words a person reads before using it."""

from collections.abc import Mapping
from typing import Any

import negsample
from negsample.corpora.pairs import describe_part
from negsample.models.build import Parts
from negsample.number_text import figure_text


def model_card(name: str, parts: Parts, facts: Mapping[str, Any]) -> str:
    """Markdown with the recipe, the data and its fingerprints, the test figures, and how to use the model."""
    data, found = facts["data"], facts["figures"]
    figures = "\n".join(f"- {key}: {figure_text(value)}" for key, value in found["test"].items())
    kinds = "\n".join(
        f"| {kind} | {row['n']} | {row['label']:.3f} | {row['score']:.3f} |" for kind, row in found["by_kind"].items()
    )
    splits = "\n".join(
        f"| {key} | {split['documents']} | {found['cut'][key]['pairs']} | {found['cut'][key]['cut']} "
        f"| `{split['fingerprint'][:16]}` |"
        for key, split in data["splits"].items()
    )
    skipped = f"\n{data['skipped_text']}.\n" if data["skipped_text"] else ""
    lm = f", language model: `{facts['training']['lm']}`" if facts["training"].get("lm") else ""
    return f"""---
library_name: negsample
tags: [summarization, evaluation, reference-free]
---
# {name}

An estimator of summary quality: given a document and a summary it answers with a number in [0, 1], higher is better,
without a reference summary. Trained by negsample {negsample.__version__} on damaged summaries; no human judgment was used.

- head: `{parts.head}`, encoder: `{parts.encoder["name"]}`{lm}
- recipe: `{facts["recipe"]}`, {facts["training"]["negatives"]} negative(s) a document; loss: {facts["loss"]}
- corpora: {", ".join(f"`{corpus}`" for corpus in data["corpora"])}{describe_part(data)}; seed {facts["training"]["seed"]}

## Test figures

On held-out documents, against the labels that the damage gives (not against people):

{figures}

| kind | examples | mean label | mean score |
|---|---|---|---|
{kinds}

## Data

{data["pairs"]} pairs, fingerprint `{data["fingerprint"][:16]}`. "Cut" counts the pairs that are longer than the model reads.
{skipped}
| split | documents | examples | cut | fingerprint |
|---|---|---|---|---|
{splits}

## Use

```python
from negsample import Estimator
Estimator.load("{name}").score(documents, summaries)
```

## Limits

It has learned to see the kinds of damage named above, in texts like those it was trained on. Measure its agreement with
people (`negsample correlate`) before you rely on it.
"""
