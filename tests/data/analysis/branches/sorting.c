static const char *plain(const char *value) {
    return value;
}

const char *sort_out(const char **values, int count, char wanted) {
    for (int at = 0; at < count; at++) {
        if (values[at][0] == wanted && values[at][1]) {
            return plain(values[at]);
        }
    }
    return 0;
}
