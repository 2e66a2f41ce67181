def close(x):
    return len(x) > 2 and close(x[1:])
