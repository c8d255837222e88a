"""The figures printed in Tables 1 to 4 of Bao et al. 2021, to stand beside one's own."""

from typing import Any

_SOURCE = (
    "Bao et al., End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization "
    "(arXiv 2005.06377), Table {number}"
)
# In percent. The columns are encoders in Tables 1 and 2, the target in Table 3, the size of the target domain in Table 4.
_TABLES = {
    1: """
        corpus         head  GloVe  USE-DAN  USE-Trans  InferSent  BERT
        CNN/DailyMail  fc    62.0   83.2     93.5       96.2       98.5
        CNN/DailyMail  cnn   72.2   83.8     90.6       91.1       NA
        CNN/DailyMail  lstm  48.9   85.0     88.2       95.6       NA
        Newsroom       fc    55.2   87.5     87.7       70.0       89.8
        Newsroom       cnn   61.4   89.8     82.8       74.4       NA
        Newsroom       lstm  50.8   83.2     74.5       69.3       NA
        BigPatent      fc    50.1   86.7     88.0       73.2       92.1
        BigPatent      cnn   63.3   80.7     82.2       76.7       NA
        BigPatent      lstm  47.7   84.1     83.8       85.5       NA
    """,
    2: """
        mutation       head  GloVe  USE-DAN  USE-Trans  InferSent  BERT
        add            fc    79.4   85.1     91.5       56.2       95.3
        add            cnn   76.5   88.6     94.2       66.2       NA
        add            lstm  90.7   91.2     95.5       69.8       NA
        delete         fc    90.0   75.3     85.6       90.7       94.6
        delete         cnn   46.4   89.2     89.2       91.4       NA
        delete         lstm  93.7   85.1     93.0       93.6       NA
        replace        fc    87.7   88.7     94.2       79.1       98.4
        replace        cnn   82.2   92.7     96.2       84.2       NA
        replace        lstm  95.9   93.7     96.9       87.4       NA
    """,
    3: """
        source         head  CNN/DailyMail
        CNN/DailyMail  BERT  98.5
        BigPatent      BERT  97.5
        Newsroom       BERT  98.2
    """,
    4: """
        source         head  30,000  100,000  300,000
        CNN/DailyMail  BERT  98.5    98.6     99.2
        Newsroom       BERT  98.2    98.4     98.3
    """,
}


def published(number: int) -> dict[str, Any]:
    """Return printed table ``number`` as plain values: ``source``, ``columns``, and ``rows``, a mapping each.

    A row has its group, its head and a value for each column, None for "NA".
    """
    head, *lines = (line.split() for line in _TABLES[number].strip().splitlines())
    values = [[None if word == "NA" else float(word) for word in line[2:]] for line in lines]
    rows = [dict(zip(head, [*line[:2], *own], strict=True)) for line, own in zip(lines, values, strict=True)]
    return {"source": _SOURCE.format(number=number), "columns": head[2:], "rows": rows}
