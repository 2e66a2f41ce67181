"""One bucket of a stream in one micro-batch, without Spark; `bucket` is the entry."""
