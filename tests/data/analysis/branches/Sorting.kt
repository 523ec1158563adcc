fun plain(value: String): String {
    return value
}

fun sortOut(values: List<String>, wanted: String): String? {
    for (value in values) {
        if (value == wanted && value != "") {
            return plain(value)
        }
    }
    return null
}
