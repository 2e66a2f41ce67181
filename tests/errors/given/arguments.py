def close(x, y):
    return len(x) > len(y)
