"""Events of any library on one machine → the columns that a query reads, the derived ones too."""
