"""The figures printed in Tables 1 to 4 of Bao et al. 2021, to stand beside one's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COLUMNS = ("GloVe", "USE-DAN", "USE-Trans", "InferSent", "BERT")
SOURCE = (
    "Bao et al., End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization "
    "(arXiv 2005.06377), Table {number}"
)


@dataclass(frozen=True)
class Published:
    """A printed table: ``rows`` maps (group, head) to a value in percent for each of ``columns``, None for "NA".

    ``group`` is the corpus (Table 1), the kind of mutation (Table 2) or the corpus trained on (Tables 3 and 4). The
    columns are encoders in Tables 1 and 2, the target in Table 3, the size of the target domain in Table 4.
    """

    number: int
    group: str
    rows: Mapping[tuple[str, str], tuple[float | None, ...]]
    columns: tuple[str, ...] = COLUMNS

    @property
    def source(self) -> str:
        """Where the figures are printed."""
        return SOURCE.format(number=self.number)

    def as_json(self) -> dict[str, Any]:
        """Return plain values: source, columns, and a row for each group and head."""
        return {
            "source": self.source,
            "columns": list(self.columns),
            "rows": [
                {self.group: group, "head": head, **dict(zip(self.columns, values, strict=True))}
                for (group, head), values in self.rows.items()
            ],
        }


TABLE_1 = Published(
    1,
    "corpus",
    {
        ("CNN/DailyMail", "fc"): (62.0, 83.2, 93.5, 96.2, 98.5),
        ("CNN/DailyMail", "cnn"): (72.2, 83.8, 90.6, 91.1, None),
        ("CNN/DailyMail", "lstm"): (48.9, 85.0, 88.2, 95.6, None),
        ("Newsroom", "fc"): (55.2, 87.5, 87.7, 70.0, 89.8),
        ("Newsroom", "cnn"): (61.4, 89.8, 82.8, 74.4, None),
        ("Newsroom", "lstm"): (50.8, 83.2, 74.5, 69.3, None),
        ("BigPatent", "fc"): (50.1, 86.7, 88.0, 73.2, 92.1),
        ("BigPatent", "cnn"): (63.3, 80.7, 82.2, 76.7, None),
        ("BigPatent", "lstm"): (47.7, 84.1, 83.8, 85.5, None),
    },
)
TABLE_2 = Published(
    2,
    "mutation",
    {
        ("add", "fc"): (79.4, 85.1, 91.5, 56.2, 95.3),
        ("add", "cnn"): (76.5, 88.6, 94.2, 66.2, None),
        ("add", "lstm"): (90.7, 91.2, 95.5, 69.8, None),
        ("delete", "fc"): (90.0, 75.3, 85.6, 90.7, 94.6),
        ("delete", "cnn"): (46.4, 89.2, 89.2, 91.4, None),
        ("delete", "lstm"): (93.7, 85.1, 93.0, 93.6, None),
        ("replace", "fc"): (87.7, 88.7, 94.2, 79.1, 98.4),
        ("replace", "cnn"): (82.2, 92.7, 96.2, 84.2, None),
        ("replace", "lstm"): (95.9, 93.7, 96.9, 87.4, None),
    },
)
TABLE_3 = Published(
    3,
    "source",
    {
        ("CNN/DailyMail", "BERT"): (98.5,),
        ("BigPatent", "BERT"): (97.5,),
        ("Newsroom", "BERT"): (98.2,),
    },
    ("CNN/DailyMail",),
)
TABLE_4 = Published(
    4,
    "source",
    {
        ("CNN/DailyMail", "BERT"): (98.5, 98.6, 99.2),
        ("Newsroom", "BERT"): (98.2, 98.4, 98.3),
    },
    ("30,000", "100,000", "300,000"),
)
