def close(x):
    found = {}
    found["a"] = x
    return sorted(found, key=len) == x
