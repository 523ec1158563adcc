func plain(_ value: String) -> String {
    return value
}

func sortOut(_ values: [String], _ wanted: String) -> String? {
    for value in values {
        if value == wanted && !value.isEmpty {
            return plain(value)
        }
    }
    return nil
}
