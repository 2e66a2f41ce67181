def close(x):
    return x[0] - 1


def tally(x):
    if len(x):
        return x[0] / 2
    return 0.0
