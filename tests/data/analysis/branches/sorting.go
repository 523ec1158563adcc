package sorting

func plain(value string) string {
	return value
}

func SortOut(values []string, wanted string) string {
	for _, value := range values {
		if value == wanted && value != "" {
			return plain(value)
		}
	}
	return ""
}
