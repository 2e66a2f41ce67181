"""How matches travel from the tasks to Spark."""
