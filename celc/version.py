"""The version of celc, in one place: that of its packages, and of the modules that it generates."""

VERSION = "0.1.0"
