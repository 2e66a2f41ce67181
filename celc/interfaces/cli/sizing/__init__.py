"""`celc size`: what a query costs on a cluster, predicted from measured runs of others.

From a compiled query and amounts (rows, keys, matches) to CPU, bytes, executors and hours.
"""
