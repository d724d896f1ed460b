// The values within a JSON value, whatever their members are called.
import { pick, type Random } from './seeded-random.ts';

/** Where a value stands: what holds it, and under which key. */
export interface Place {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

/** Any value within, each as likely as any other. */
export function pickPlace(value: unknown, random: Random): Place | undefined {
  const places = placesIn(value);
  return places.length === 0 ? undefined : pick(random, places);
}

function placesIn(value: unknown): readonly Place[] {
  if (!isContainer(value)) return [];
  const holder = value as Place['holder'];
  return Object.keys(holder).flatMap((key) => [
    { holder, key },
    ...placesIn(valueAt({ holder, key })),
  ]);
}

export const keysIn = (value: unknown): readonly string[] =>
  placesIn(value).map(({ key }) => String(key));

export const memberOf = (value: unknown, key: string): unknown =>
  isContainer(value) ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;

export const valueAt = ({ holder, key }: Place): unknown => memberOf(holder, String(key));

/** An assignment would not set a member named `__proto__`. */
export function put(holder: object, key: string | number, value: unknown): void {
  Object.defineProperty(holder, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

export const isContainer = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;

export const copyOf = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));
