"""Conditions and expressions: names looked up, types found, casts made explicit."""
