"""Types of values, which the compiler and all routes share."""
