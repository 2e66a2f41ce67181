import json


def helper(x):
    return len(json.dumps("x")) > len(x)


def close(x):
    return helper(x)
