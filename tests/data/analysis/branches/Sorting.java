class Sorting {
    String plain(String value) {
        return value;
    }

    String sortOut(String[] values, String wanted) {
        for (String value : values) {
            if (value.equals(wanted) && !value.isEmpty()) {
                return plain(value);
            }
        }
        return null;
    }
}
