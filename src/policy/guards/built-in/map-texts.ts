import { isUtf8 } from 'node:buffer';
import { isObject } from '../../../platform/json.ts';
import { A_VALUE, type Work } from './run-work.ts';

/** `base64`: what stands for bytes. `bytes`: one character for each of what is no text. */
export type Form = 'text' | 'base64' | 'bytes';

/** At once where that is no work; `name` is that of the member that has it, if any. */
export type MapText = (text: string, name: string, form: Form) => string | Work<string>;

/**
 * The value with each of its texts replaced, names of members included; the same object where nothing is. What a member called
 * `blob` or `data` has in base64 is looked at as the text that it stands for, too.
 */
export function* mapTexts(value: unknown, map: MapText, name = ''): Work<unknown> {
  if (typeof value === 'string') {
    if (ENCODED.has(name)) return yield* mapEncoded(value, map, name);
    const mapped = map(value, name, 'text');
    if (typeof mapped !== 'string') return yield* mapped;
    yield value.length + A_VALUE;
    return mapped;
  }
  if (Array.isArray(value)) return yield* mapItems(value, map, name);
  return isObject(value) ? yield* mapMembers(value, map) : value;
}

function* mapItems(
  items: readonly unknown[],
  map: MapText,
  name: string,
): Work<readonly unknown[]> {
  let isChanged = false;
  const mapped: unknown[] = [];
  for (const item of items) {
    const next = isPlain(item) ? item : yield* mapTexts(item, map, name);
    isChanged ||= next !== item;
    mapped.push(next);
  }
  yield items.length * A_VALUE;
  return isChanged ? mapped : items;
}

function* mapMembers(
  members: Readonly<Record<string, unknown>>,
  map: MapText,
): Work<Readonly<Record<string, unknown>>> {
  let isChanged = false;
  const mapped: (readonly [string, unknown])[] = [];
  for (const [name, member] of Object.entries(members)) {
    const ofName = map(name, '', 'text');
    const nextName = typeof ofName === 'string' ? ofName : yield* ofName;
    const next = isPlain(member) ? member : yield* mapTexts(member, map, name);
    isChanged ||= nextName !== name || next !== member;
    mapped.push([nextName, next]);
  }
  yield mapped.length * A_VALUE;
  return isChanged ? Object.fromEntries(mapped) : members;
}

/** There is no text in it. */
const isPlain = (value: unknown): boolean => typeof value !== 'string' && typeof value !== 'object';

/** MCP: bytes of resources, images and sounds. */
const ENCODED: ReadonlySet<string> = new Set(['blob', 'data']);

/** A text in which nothing else is, such as `//` of an address. */
const BASE64 = /^[A-Za-z0-9+/=\r\n]*$/;

function* mapEncoded(given: string, map: MapText, name: string): Work<string> {
  const ofText = map(given, name, BASE64.test(given) ? 'base64' : 'text');
  const text = typeof ofText === 'string' ? ofText : yield* ofText;
  // Readers pass over white space, and some over whatever else is no base64.
  const bytes = Buffer.from(text.replaceAll('=', ''), 'base64');
  const [encoding, form] = isUtf8(bytes)
    ? (['utf8', 'text'] as const)
    : (['latin1', 'bytes'] as const);
  const decoded = bytes.toString(encoding);
  const ofBytes = map(decoded, name, form);
  const next = typeof ofBytes === 'string' ? ofBytes : yield* ofBytes;
  yield text.length + A_VALUE;
  return next === decoded ? text : Buffer.from(next, encoding).toString('base64');
}
