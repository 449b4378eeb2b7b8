"""What looks at a tape, and the command line."""
