"""How what a tape records is run fast."""
