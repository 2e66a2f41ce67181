"""What a task does with its rows, in a Python worker; `tasks` is the entry."""
