"""Where the checkout lies whose tests these are."""

from pathlib import Path

PARENTS = Path(__file__).resolve().parents
ROOT = next(folder for folder in PARENTS if (folder / "pyproject.toml").exists())
