"""`celc explain`, `celc run`, and the layers of the tree (being written)."""
