function plain(value: string): string {
  return value;
}

function sortOut(values: string[], wanted: string): string | null {
  for (const value of values) {
    if (value === wanted && value) {
      return plain(value);
    }
  }
  return null;
}
