import { isObject } from '../../../platform/json.ts';

/**
 * The value with each of its texts replaced, names of members included; the same object where nothing is. What a member called
 * `blob` or `data` has in base64 is looked at as the text that it stands for.
 */
export function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return mapItems(value, map);
  return isObject(value) ? mapMembers(value, map) : value;
}

function mapItems(items: readonly unknown[], map: (text: string) => string): readonly unknown[] {
  let isChanged = false;
  const mapped = items.map((item) => {
    const next = mapTexts(item, map);
    isChanged ||= next !== item;
    return next;
  });
  return isChanged ? mapped : items;
}

function mapMembers(
  members: Readonly<Record<string, unknown>>,
  map: (text: string) => string,
): Readonly<Record<string, unknown>> {
  let isChanged = false;
  const mapped = Object.entries(members).map(([name, member]) => {
    const nextName = map(name);
    const next =
      ENCODED.has(name) && typeof member === 'string'
        ? mapEncoded(member, map)
        : mapTexts(member, map);
    isChanged ||= nextName !== name || next !== member;
    return [nextName, next] as const;
  });
  return isChanged ? Object.fromEntries(mapped) : members;
}

/** MCP: bytes of resources, images and sounds. */
const ENCODED: ReadonlySet<string> = new Set(['blob', 'data']);
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}\s*$/;

function mapEncoded(text: string, map: (text: string) => string): string {
  const own = map(text);
  if (own !== text || !BASE64.test(text)) return own;
  const decoded = Buffer.from(text, 'base64').toString('latin1');
  const next = map(decoded);
  return next === decoded ? text : Buffer.from(next, 'latin1').toString('base64');
}
