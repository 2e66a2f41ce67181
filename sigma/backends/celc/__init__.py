"""pySigma finds celc here: it asks all modules of its namespace `sigma.backends` for backends."""

from celc.interfaces.importing.sigma.backend import CelcBackend

__all__ = ["CelcBackend"]
