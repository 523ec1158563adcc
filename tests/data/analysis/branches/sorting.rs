fn plain(value: &str) -> &str {
    value
}

fn sort_out<'a>(values: &[&'a str], wanted: &str) -> Option<&'a str> {
    for value in values {
        if *value == wanted && !value.is_empty() {
            return Some(plain(value));
        }
    }
    None
}
