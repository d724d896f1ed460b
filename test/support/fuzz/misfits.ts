// A value with each of its members, at every depth, in each kind that JSON has.
import { copyOf, isContainer, put } from './json-places.ts';

/** Of each kind some; what is in a list or an object may be wrong, too. */
const KINDS: readonly unknown[] = [
  ...[null, true, 7, -0.5, 'text', 'data:image/png;base64,AAEC', 'ab='],
  ...[[], {}, [null], ['text', 7], { a: null, type: 7 }],
];

/** So many follow one another with the same path. */
export const KINDS_OF_MISFITS = KINDS.length;

export interface Misfit {
  /** Names and positions, with dots between them. */
  readonly path: string;
  readonly kind: unknown;
  readonly value: unknown;
}

export const listMisfits = (whole: object): readonly Misfit[] =>
  listPaths(whole).flatMap((path) =>
    KINDS.map((kind) => ({ path: path.join('.'), kind, value: replace(whole, path, kind) })),
  );

const listPaths = (value: unknown): readonly (readonly string[])[] =>
  isContainer(value)
    ? Object.entries(value).flatMap(([key, member]) => [
        [key],
        ...listPaths(member).map((path) => [key, ...path]),
      ])
    : [];

function replace(whole: object, [...path]: readonly string[], kind: unknown): unknown {
  const copy = copyOf(whole);
  const key = path.pop() ?? '';
  let holder = copy;
  for (const step of path) holder = Reflect.get(Object(holder), step);
  put(Object(holder), key, kind);
  return copy;
}
