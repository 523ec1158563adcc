def plain(value):
    return value


def sort_out(values, wanted):
    for value in values:
        if value == wanted and value:
            return plain(value)
    return None
