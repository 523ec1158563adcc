function plain(value: string) {
  return <b>{value}</b>;
}

export function sortOut(values: string[], wanted: string) {
  for (const value of values) {
    if (value === wanted && value) {
      return plain(value);
    }
  }
  return <i />;
}
