function plain(value) {
  return value;
}

function sortOut(values, wanted) {
  for (const value of values) {
    if (value === wanted && value) {
      return plain(value);
    }
  }
  return null;
}
