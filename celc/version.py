"""The version of celc: that of its runtime, which is released with it.

In a wheel this file has the number itself, so that both can be compared.
"""

from celc_runtime.version import VERSION

__all__ = ["VERSION"]
