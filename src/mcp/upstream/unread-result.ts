// A long result that the gateway need not read: it is passed on as received, and parsed only if a member is accessed
// after all.

import { failUpstream } from '../../errors/gateway-error.ts';
import {
  createNote,
  decodeUtf8,
  type JsonObject,
  noteWritten,
  parseJson,
  parseObject,
  type Written,
} from '../../platform/json.ts';
import { cutPieces, joinPieces, releaseChunks } from '../../platform/pieces.ts';
import {
  hasTwice,
  type ScannedEntry,
  type ScannedMember,
  type ScannedObject,
  scanObject,
} from '../../platform/scan/scan-json.ts';
import { Findings, RESULTS } from '../protocol/fit.ts';

/** Bytes of a response, and the position of the result in them. */
interface ResultBytes {
  /** Valid only for now: the next call of `joinPieces` overwrites them. */
  readonly bytes: Buffer;
  /** The same, as received. */
  readonly pieces: readonly Uint8Array[];
  /** True if the result is passed on in these pieces, and not as text. */
  readonly isLong: boolean;
  readonly start: number;
  readonly end: number;
}

/**
 * The result, with only its short members parsed. Its members can be read and enumerated like those of any object.
 * Undefined if the gateway has to know its content: its links, its continuation, or the parts that clients cannot read.
 *
 * Reading a member throws a GatewayError `upstream_error` if one of its strings is not valid JSON.
 */
export function createUnreadResult({
  bytes,
  pieces: received,
  isLong,
  start,
  end,
}: ResultBytes): JsonObject | undefined {
  const scanned = scanObject(bytes, start, end, SCAN_RULES);
  if (scanned === undefined || scanned.members.some((one) => isRead(bytes, one))) return undefined;
  if (!isFitting(bytes, scanned)) return undefined;
  const { length } = bytes;
  const pieces = releaseChunks(received);
  const written = isLong
    ? cutPieces(pieces, start, length - end)
    : decodeUtf8(bytes.subarray(start, end));
  if (written === undefined) return undefined;
  const { members } = scanned;
  const meta = members.find(({ name }) => name === '_meta');
  return noteUnread(written, readShortMembers(bytes, members), {
    pieces,
    isLong,
    length,
    members,
    meta: meta && bytes.toString('utf8', meta.start, meta.end),
  });
}

/** The positions of the members of an unread result. */
interface UnreadSource extends Pick<ResultBytes, 'pieces' | 'isLong'> {
  /** Bytes of all pieces. */
  readonly length: number;
  readonly members: readonly ScannedMember[];
  /** The text of `_meta`. */
  readonly meta: string | undefined;
}

function noteUnread(written: Written, short: JsonObject, source: UnreadSource): JsonObject {
  let whole: JsonObject | undefined;
  let ownMeta: JsonObject | undefined;
  const result = new Proxy(short, {
    get(members, name) {
      if (typeof name === 'symbol' || !Object.hasOwn(members, name))
        return Reflect.get(members, name);
      if (name === '_meta' && source.meta !== undefined) {
        ownMeta ??= parseMeta(source.meta);
        return ownMeta;
      }
      if (members[name] !== undefined) return members[name];
      whole ??=
        parseObject(typeof written === 'string' ? written : joinPieces(written)) ?? failToRead();
      return whole[name];
    },
  });
  UNREAD.set(result, { ...source, short });
  noteWritten(result, written);
  return result;
}

function parseMeta(text: string): JsonObject {
  const meta = parseObject(text) ?? failToRead();
  noteWritten(meta, text);
  return meta;
}

const UNREAD = createNote<UnreadSource & { readonly short: JsonObject }>();

/** Finds an unread result. It names no resource, which is known without parsing it. */
export const findUnread = UNREAD.find;

/**
 * An unread result without some of its members, with its `_meta` replaced by this serialized one if it has a different one, and
 * with members that the gateway knows but does not write there. None of it is parsed.
 */
export function changeUnread(
  result: object,
  removed: ReadonlySet<string>,
  meta?: string,
  added?: JsonObject,
): JsonObject {
  const source = findUnread(result) ?? failToRead();
  const { pieces, isLong, length, short } = source;
  const ownMeta = removed.has('_meta') ? undefined : (meta ?? source.meta);
  const members = source.members.filter(({ name }) => !removed.has(name));
  const texts: Uint8Array[] = [OPENING];
  for (const [index, { name, from, start, end }] of members.entries()) {
    const isMeta = ownMeta !== undefined && name === '_meta';
    if (index > 0) texts.push(COMMA);
    texts.push(...cutPieces(pieces, from, length - (isMeta ? start : end)));
    if (isMeta) texts.push(Buffer.from(ownMeta));
  }
  texts.push(CLOSING);
  const kept = Object.fromEntries(members.map(({ name }) => [name, short[name]]));
  const written = isLong ? texts : Buffer.concat(texts).toString('utf8');
  return noteUnread(written, { ...kept, ...added }, { ...source, members, meta: ownMeta });
}

const OPENING = Buffer.from('{');
const COMMA = Buffer.from(',');
const CLOSING = Buffer.from('}');

/** True for members that say how a call continues, that are not for the client, or that have to be checked. */
const isRead = (bytes: Buffer, { name, start, end }: ScannedMember) =>
  name === 'resultType'
    ? bytes.toString('latin1', start, Math.min(end, start + MAX_SHORT)) !== COMPLETE
    : name === 'cache' || name === 'messages';

const COMPLETE = '"complete"';
/**
 * The beginnings of the types of links and embedded resources. Fewer values than a response may have, since all of them are
 * parsed as soon as one is accessed.
 */
const SCAN_RULES = { sought: Buffer.from('resource').readBigUInt64LE(), maxValues: 400_000 };

/** True if all of it conforms to MCP. The method is not known here: `content` belongs to tools, `contents` to resources. */
function isFitting(bytes: Buffer, scanned: ScannedObject) {
  const outline = readMembers(bytes, scanned.members, scanned.entries);
  if (outline === undefined) return false;
  const found = new Findings();
  const rules = 'contents' in outline ? ['tools/call', 'resources/read'] : ['tools/call'];
  return (
    rules.every((method) => RESULTS.get(method)?.session(outline, found)) && found.list.length === 0
  );
}

/** Long enough for a flag, a number or an empty list. */
const MAX_SHORT = 32;

/** All members are present, in order; those that are not short are undefined, which no JSON member can be. */
const readShortMembers = (bytes: Buffer, members: readonly ScannedMember[]): JsonObject =>
  Object.fromEntries(
    members.map(({ name, start, end }) => [
      name,
      end - start > MAX_SHORT ? undefined : parseJson(bytes.toString('utf8', start, end)),
    ]),
  );

const failToRead = (): never => failUpstream('The server answered with a text that is no JSON.');

// The outline of a long result, without its long strings: enough to see whether clients can read it.

/** Maximum size of a value that is parsed, in bytes. */
const MAX_PARSED = 4096;
/** Bytes that stand for a longer string, up to its first escape. */
const SHOWN = 64;

const QUOTE = 0x22;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * The object, whose long strings are cut, and whose structured content is empty. Undefined if more of it would have to be parsed.
 * `entries` are the entries of lists among the members.
 */
function readMembers(
  bytes: Buffer,
  members: readonly ScannedMember[],
  entries: readonly ScannedEntry[] | undefined,
): JsonObject | undefined {
  const outline: [string, unknown][] = [];
  for (const { name, start, end } of members) {
    const value =
      LISTS.has(name) && bytes[start] === OPEN_ARRAY
        ? readList(
            bytes,
            entries?.filter((entry) => entry.start > start && entry.end < end),
          )
        : readValue(bytes, start, end, OPEN.has(name));
    if (value === undefined) return undefined;
    outline.push([name, value]);
  }
  return Object.fromEntries(outline);
}

const LISTS = new Set(['content', 'contents']);
/** It matters only that they are objects. */
const OPEN = new Set(['structuredContent', '_meta']);

/** Also undefined if one of them is not an object. */
function readList(
  bytes: Buffer,
  entries: readonly ScannedEntry[] | undefined,
): readonly JsonObject[] | undefined {
  const list: JsonObject[] = [];
  for (const { start, members } of entries ?? []) {
    const isOdd = bytes[start] !== OPEN_OBJECT || hasTwice(members);
    const outline = isOdd ? undefined : readMembers(bytes, members, undefined);
    if (outline === undefined) return undefined;
    list.push(outline);
  }
  return entries && list;
}

function readValue(bytes: Buffer, start: number, end: number, isOpen: boolean): unknown {
  const first = bytes[start];
  if (isOpen && first === OPEN_OBJECT) return {};
  const length = end - start;
  if (first === QUOTE && length > SHOWN) return cutString(bytes, start + 1);
  if (length <= MAX_PARSED) return parseJson(bytes.toString('utf8', start, end));
  return first === QUOTE || first === OPEN_ARRAY || first === OPEN_OBJECT ? undefined : 0;
}

/** A multiple of four characters, like any part of base64. */
function cutString(bytes: Buffer, start: number) {
  const [shown = ''] = bytes.toString('latin1', start, start + SHOWN - 4).split('\\', 1);
  return shown.slice(0, shown.length - (shown.length % 4));
}
