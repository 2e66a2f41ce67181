"""Foundations of Complex Event Processing: section 8.2, its queries over random streams."""
