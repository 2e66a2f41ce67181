"""What editors ask of a text with MATCH_RECOGNIZE."""
