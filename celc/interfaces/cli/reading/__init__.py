"""Events for the command line: files and standard input as batches of Arrow."""
