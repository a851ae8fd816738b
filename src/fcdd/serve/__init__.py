"""Exported models behind HTTP: predictions for programs, a page for people. Needs no torch."""
