// §4.11: values of a label that somebody else chooses must not make series without end.

/** The first `max` values as they are, all further ones as `other`. */
export function createLimitValues(max: number): (value: string) => string {
  const known = new Set<string>();

  return function limitValue(value) {
    if (known.has(value)) return value;
    if (known.size >= max) return 'other';
    known.add(value);
    return value;
  };
}
