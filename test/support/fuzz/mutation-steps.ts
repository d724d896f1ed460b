// The steps that turn a valid request into one that is almost right.
import { copyOf, isContainer, keysIn, memberOf, pickPlace, put, valueAt } from './json-places.ts';
import { HEADER_VALUES, METHODS, ODD_KEYS, ODD_NUMBERS, ODD_TEXTS } from './odd-values.ts';
import { pick, type Random } from './seeded-random.ts';

/** A valid request. */
export interface Sample {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: Json;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Stands in a message for text that no `JSON.stringify` would write. */
interface Raw {
  readonly marker: string;
  readonly text: string;
}

export interface Draft {
  message: unknown;
  headers: Record<string, string>;
  readonly raws: Raw[];
}

type Step = (draft: Draft, random: Random, samples: readonly Sample[]) => string;

function dropMember({ message }: Draft, random: Random): string {
  const place = pickPlace(message, random);
  if (place === undefined) return 'nothing to drop';
  if (Array.isArray(place.holder)) place.holder.splice(Number(place.key), 1);
  else delete place.holder[place.key];
  return `dropped ${place.key}`;
}

function replaceMember(draft: Draft, random: Random): string {
  const place = pickPlace(draft.message, random);
  const { value, told } = oddValue(draft, random);
  if (place === undefined || random() < 0.02) draft.message = value;
  else put(place.holder, place.key, value);
  return `${place?.key ?? 'all'} became ${told}`;
}

function addMember(draft: Draft, random: Random, samples: readonly Sample[]): string {
  const place = pickPlace(draft.message, random);
  const holder = place && valueAt(place);
  if (!isContainer(holder)) return 'nothing to add to';
  const known = keysIn(pick(random, samples).message);
  const key = random() < 0.5 ? pick(random, ODD_KEYS) : pick(random, known);
  const { value, told } = oddValue(draft, random);
  put(holder, key, value);
  return `added ${JSON.stringify(key)}: ${told} to ${place?.key}`;
}

function moveMember({ message }: Draft, random: Random): string {
  const from = pickPlace(message, random);
  const to = pickPlace(message, random);
  if (from === undefined || to === undefined) return 'nothing to move';
  put(to.holder, to.key, copyOf(valueAt(from)));
  return `${to.key} became a copy of ${from.key}`;
}

/** JSON with the same name twice: the last one counts. */
function doubleMember(draft: Draft, random: Random): string {
  const place = pickPlace(draft.message, random);
  if (place === undefined || Array.isArray(place.holder)) return 'nothing to double';
  const { value, told } = oddValue(draft, random);
  const twice = `${JSON.stringify(valueAt(place)) ?? 'null'},${JSON.stringify(place.key)}:${JSON.stringify(value)}`;
  put(place.holder, place.key, insertRaw(draft, twice));
  return `doubled ${place.key} as ${told}`;
}

function swapMethod({ message }: Draft, random: Random): string {
  const method = pick(random, METHODS);
  if (isContainer(message)) put(message, 'method', method);
  return `the method became ${method}`;
}

function changeHeader({ headers }: Draft, random: Random): string {
  const name = pick(random, Object.keys(HEADER_VALUES));
  if (random() < 0.3) {
    delete headers[name];
    return `without the header ${name}`;
  }
  const value = pick(random, HEADER_VALUES[name] ?? ['']);
  headers[name] = value;
  return `${name}: ${value.slice(0, 40)}`;
}

function swapHeaders(draft: Draft, random: Random, samples: readonly Sample[]): string {
  const other = pick(random, samples);
  draft.headers = { ...other.headers };
  return `headers of ${other.name}`;
}

/** A session's message with a claim, or a stateless one without. */
function swapEra(draft: Draft, random: Random, samples: readonly Sample[]): string {
  const other = pick(random, samples);
  const params = memberOf(draft.message, 'params');
  if (!isContainer(params)) return 'no era to swap';
  put(params, '_meta', copyOf(memberOf(memberOf(other.message, 'params'), '_meta')) ?? {});
  return `_meta of ${other.name}`;
}

export const STEPS: readonly Step[] = [
  dropMember,
  replaceMember,
  replaceMember,
  replaceMember,
  addMember,
  addMember,
  moveMember,
  doubleMember,
  swapMethod,
  changeHeader,
  changeHeader,
  swapHeaders,
  swapEra,
];

interface OddValue {
  readonly value: unknown;
  readonly told: string;
}

function oddValue(draft: Draft, random: Random): OddValue {
  const kind = random();
  if (kind < 0.12) return { value: null, told: 'null' };
  if (kind < 0.2) return { value: random() < 0.5, told: 'a boolean' };
  if (kind < 0.28) return { value: [], told: '[]' };
  if (kind < 0.36) return { value: {}, told: '{}' };
  if (kind < 0.44) return { value: [1, null, { a: [] }, 'x'], told: 'a list' };
  if (kind < 0.6) {
    const number = pick(random, ODD_NUMBERS);
    return { value: insertRaw(draft, number), told: number.slice(0, 40) };
  }
  if (kind < 0.93) {
    const text = pick(random, ODD_TEXTS);
    return { value: text, told: JSON.stringify(text.slice(0, 40)) };
  }
  if (kind < 0.965) return nested(draft, random);
  if (kind < 0.97) {
    const length = pick(random, [10_001, 100_000, 1_100_000]);
    return { value: 'x'.repeat(length), told: `${length} letters` };
  }
  return { value: pick(random, METHODS), told: 'a method' };
}

function nested(draft: Draft, random: Random): OddValue {
  const depth = pick(random, [100, 1000, 10_000, 50_000]);
  const [open, close] = pick(random, [
    ['[', ']'],
    ['{"a":', '}'],
    ['{"children":[', ']}'],
    ['{"__proto__":', '}'],
  ] as const);
  const core = open === '[' || open.endsWith('[') ? '' : '1';
  const text = open.repeat(depth) + core + close.repeat(depth);
  return { value: insertRaw(draft, text), told: `${open} ${depth} deep` };
}

function insertRaw({ raws }: Draft, text: string): string {
  const marker = `\u0001${raws.length}\u0001`;
  raws.push({ marker, text });
  return marker;
}
