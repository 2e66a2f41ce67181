"""What resolution warns of: formulas that match nothing, cost much, or mean something else."""
