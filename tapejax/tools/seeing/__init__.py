"""The tape as a table, as code, as a graph, step by step, and why a gradient is None. Imported when first used."""
