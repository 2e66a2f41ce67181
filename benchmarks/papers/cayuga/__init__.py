"""A General Algebra and Implementation for Monitoring Event Streams (Cayuga)."""
