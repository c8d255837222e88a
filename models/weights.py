"""Checking the weights of a folder that a model, or a part of one, was saved to."""

from pathlib import Path

from negsample.errors import InputError
from negsample.models.encoders.base import file_digest


def check_weights(folder: Path, expected: str) -> None:
    """Raises InputError where ``model.safetensors`` is missing or its SHA-256 is not ``expected`` (64 hex digits)."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise InputError(f"{path} is missing; copy the model again")
    if file_digest(path).hex() != expected:
        raise InputError(f"{path}: damaged or changed (its hash is not the one in config.json); copy the model again")
