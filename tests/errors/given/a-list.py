LIMITS = [1.0, 2.0]


def close(x):
    return LIMITS[0] > x[0]
