"""`celc import`: rules in other languages become files of CEL."""
