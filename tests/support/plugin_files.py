"""An encoder and a head as a package outside negsample would have them: one file each."""

from pathlib import Path

ENCODER = '''
from collections import Counter
import numpy as np

class Letters:
    """Share of each letter of the alphabet among a sentence's letters."""

    name, dim, unit = "letters", 26, "sentence"
    fingerprint = "1e77e125" * 8

    def __init__(self):
        self.counts = Counter()

    def encode(self, texts):
        rows = np.zeros((len(texts), 26), np.float32)
        for row, text in zip(rows, texts):
            SEEN[text] += 1
            for letter in text.lower():
                if "a" <= letter <= "z":
                    row[ord(letter) - 97] += 1
            row /= max(1.0, row.sum())
        return rows

    def save(self, folder):
        return {"name": "letters", "options": {}, "files": [], "fingerprint": self.fingerprint}

SEEN = Counter()

def make():
    return Letters()
'''
HEAD = '''
import torch
from torch import nn

class Means(nn.Module):
    """A layer over the mean document row, the mean summary row and their product."""

    takes = "rows"

    def __init__(self, dim, max_document, max_summary, unit):
        super().__init__()
        self.hidden = nn.Linear(3 * dim, 8)
        self.output = nn.Linear(8, 1)

    def forward(self, document, summary, document_mask, summary_mask):
        d, s = self._mean(document, document_mask), self._mean(summary, summary_mask)
        return self.output(torch.relu(self.hidden(torch.cat([d, s, d * s], 1)))).squeeze(-1)

    @staticmethod
    def _mean(rows, mask):
        weights = mask.unsqueeze(-1).float()
        return (rows * weights).sum(1) / weights.sum(1).clamp(min=1)
'''


def write_plugin(folder: Path) -> None:
    """Both files, and the two lines that make an installed distribution offer them."""
    (folder / "letters_encoder.py").write_text(ENCODER)
    (folder / "means_head.py").write_text(HEAD)
    about = folder / "letters_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: letters-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[negsample.encoders]\nletters = letters_encoder:make\n\n[negsample.heads]\nmeans = means_head:Means\n"
    )
