"""Recorded operations as a program: what every tool that shows or prints one reads."""
