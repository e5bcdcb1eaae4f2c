"""Inputs that fuzzing found interesting, replayed."""
