"""Whole programs: `function`, `Module`, saved models, checkpoints, datasets."""
