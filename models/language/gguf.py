"""Where the language model that ``lm`` names lies: a folder, a hub id, a GGUF file, or the packaged one (extra ``[lm]``)."""

import shutil
import sys
import tempfile
from pathlib import Path

from negsample.errors import InputError
from negsample.io.files import file_digest
from negsample.models.embedding_cache import cache_root
from negsample.models.language.model_files import model_folder, one_line, quiet
from negsample.models.language.packaged import gemma_file

PACKAGED = "packaged"
_GGUF = "gguf:"


def lm_folder(lm: str) -> Path:
    """The local folder of ``lm``: ``packaged``, ``gguf:FILE``, a folder, or a hub id.

    A GGUF file is read by transformers, its weights made float32, and kept under the cache's root, so that the minute
    that takes is spent once. Raises InputError where there is none or it can't be read.
    """
    if lm == PACKAGED:
        with tempfile.TemporaryDirectory() as scratch:
            return _converted(gemma_file(Path(scratch)))
    if lm.startswith(_GGUF):
        path = Path(lm.removeprefix(_GGUF)).expanduser()
        if not path.is_file():
            raise InputError(f"lm={lm}: there is no file {path}; give gguf:FILE")
        return _converted(path)
    return model_folder(lm)


def _converted(path: Path) -> Path:
    import torch
    import transformers

    target = cache_root() / "gguf" / file_digest(path).hex()[:32]
    if (target / "config.json").is_file():
        return target
    print(f"negsample: reading {path.name} and keeping it in {target} (once; about a minute)", file=sys.stderr)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
            network = transformers.AutoModelForCausalLM.from_pretrained(
                path.parent, gguf_file=path.name, dtype=torch.float32
            )
            # What is written is no longer quantised.
            if hasattr(network.config, "quantization_config"):
                del network.config.quantization_config
            network.hf_quantizer = None  # type: ignore[assignment]
            network.save_pretrained(made)
            tokenizer.save_pretrained(made)
        if not (target / "config.json").is_file():
            made.rename(target)
    # transformers and gguf raise errors of many kinds.
    except Exception as error:
        raise InputError(
            f"{path}: transformers cannot read this GGUF file ({one_line(error)}); give another, or a model's folder"
        ) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target
