"""Conditions and expressions on events → Python expressions, and what events are called."""
