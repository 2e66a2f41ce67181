"""The version of celc, in one place: that of both distributions, and of generated modules."""

VERSION = "0.1.0"
