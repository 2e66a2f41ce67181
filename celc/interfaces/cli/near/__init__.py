"""`celc run --near`."""
