"""The version of celc, in one place; generated modules carry it."""

VERSION = "0.1.0"
