// Memoizes a function of one object.

/** Calls `compute` once per object. The value lives as long as the object. */
export function computeOnce<Key extends object, Value>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();

  return function getComputed(key) {
    const value = known.get(key) ?? compute(key);
    known.set(key, value);
    return value;
  };
}
