"""Loads generated modules without files. Here the compiler meets the runtime."""

from celc.loader.matcher import Matcher, matches_of

__all__ = ["Matcher", "matches_of"]
