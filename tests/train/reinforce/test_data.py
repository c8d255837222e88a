"""Documents for training by a reward."""

import json
from pathlib import Path

from negsample.train.reinforce.config import make_reinforce_config
from negsample.train.reinforce.data import read_sources

STORY = "One came. Two came. Three came. Four came. Five came. Six came."


def test_headlines_are_first_lines_and_stories_five_sentences(tmp_path: Path) -> None:
    rows = [
        # Two highlights; a summary of one line; one that is too short; many more that are well.
        (f"{STORY} 1", "Five came, said one\nSix came, said two"),
        (f"{STORY.replace('One', 'Ten')}", "Ten came, they say. Others came."),
        (f"{STORY.replace('One', 'Ann')}", "Short"),
        *((STORY.replace("One", f"Bob {n}"), f"Bob {n} came, they say") for n in range(17)),
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"document": d, "summary": s}) + "\n" for d, s in rows))
    values = {"corpus": str(path), "headlines": True, "headline_characters": 10}
    sources, _, about = read_sources(make_reinforce_config(values))
    found = {source.document: source.references for part in sources.values() for source in part}
    assert len(found) == 19
    assert found["One came. Two came. Three came. Four came. Five came."] == ("Five came, said one",)
    assert found["Ten came. Two came. Three came. Four came. Five came."] == ("Ten came, they say.",)
    assert about["skipped"] == "skipped 1 record: 1 a headline of fewer than 10 characters"
    few, _, _ = read_sources(make_reinforce_config({"corpus": str(path), "sample": 6}))
    assert sum(map(len, few.values())) == 6
