// What follows from an object, and is found out once for each.

/** `compute` is asked once for each object. Its answer is kept for as long as the object is. */
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
