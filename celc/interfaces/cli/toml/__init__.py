"""Texts of TOML with places: files of settings, and tests of queries."""
