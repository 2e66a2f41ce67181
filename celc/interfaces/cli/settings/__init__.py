"""Settings of a project: options that its commands take from a file.

`files` finds the file and reads it. `options` makes options of the command line of it.
"""
