"""What people see: the command line, explanations, pages of HTML, and rules of other languages."""
