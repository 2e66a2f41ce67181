"""Bridging the Gap: Complex Event Processing on Stream Processing Engines (CEP2ASP)."""
