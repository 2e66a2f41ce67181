"""On Complexity and Optimization of Expensive Queries in Complex Event Processing (SASE++)."""
