"""Bytes that outlive a micro-batch: events (`rows`) and the state of a bucket (`state`)."""
