"""Events and states of a stream as bytes."""
