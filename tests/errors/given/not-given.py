def closer(x):
    return len(x) > 1
