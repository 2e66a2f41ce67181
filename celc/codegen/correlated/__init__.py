"""Conditions across events → the functions that check matches, or define them."""
