"""TRL's own trainer with the reward."""

from pathlib import Path

import pytest
import tiny_lm


def test_grpo_trains_three_steps_with_the_reward(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="TRL is not installed: pip install 'negsample[trl]'")
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from negsample.rewards import Reward

    folder = tiny_lm.build(tmp_path / "model", "gpt")
    rows = {"prompt": ["the cat", "a mat"], "story": ["the cat sat on a mat .", "a mat is long ."]}
    function = Reward("copied=1, words=0.1", document="story", length="partial")
    settings = GRPOConfig(
        output_dir=str(tmp_path / "out"), max_steps=3, per_device_train_batch_size=4, num_generations=2,
        max_completion_length=6, report_to=[], use_cpu=True, save_strategy="no", logging_steps=1, disable_tqdm=True,
        bf16=False,  # Accelerate would keep it for the tests to come
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=str(folder),
        reward_funcs=function,
        args=settings,
        train_dataset=Dataset.from_dict(rows),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    trainer.train()
    assert trainer.state.global_step == 3
    logged = {key for line in trainer.state.log_history for key in line}
    assert "rewards/copied=1, words=0.1(document=story,length=partial)/mean" in logged
    assert any(key.endswith("correlation_with_words") for key in logged)
    # Four outputs a step: a reward that was not asked for would have seen none.
    assert function.report()["words"] is not None
    assert function._outputs == 12
