"""The commands of ``python -m tapejax``: run, check, demo."""
