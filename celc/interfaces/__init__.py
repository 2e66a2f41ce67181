"""What people see: the command line, explanations, and pages of HTML."""
