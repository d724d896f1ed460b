// §18.7: parses and writes postern.lock, and computes fingerprints.
import {
  LOCKED_ITEMS,
  type LockedItemKind,
  type LockedKind,
  type ServerContent,
} from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { UpstreamError } from '../mcp/upstream/upstream.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import { toVisibleJson } from '../platform/invisible.ts';
import { digestJson, isObject, type JsonObject, parseObject } from '../platform/json.ts';
import { quote } from '../platform/text.ts';

export const LOCK_FILE_NAME = 'postern.lock';

/** Everything that was approved, by server. */
export interface LockFile {
  readonly servers: ReadonlyMap<string, LockedServer>;
}

export interface LockedServer {
  /** Undefined if the server has none. Several if they differ between users; the same holds for tools and prompts. */
  readonly instructions: readonly Fingerprint[] | undefined;
  readonly prompts: LockedItems;
  /** Keyed by URI. */
  readonly skills: LockedItems;
  readonly tools: LockedItems;
}

/** Keyed by the server's own names. */
export type LockedItems = ReadonlyMap<string, readonly Fingerprint[]>;

export const EMPTY_LOCK_FILE: LockFile = { servers: new Map() };

const VERSION = 1;

/** A lock file that cannot be used. The message says what to do. */
export class LockFileError extends Error {
  override readonly name = 'LockFileError';
}

/**
 * `{}` deliberately locks nothing. A lock without servers is different: it approves nothing. An empty file, as seen while it is
 * being written, is neither: it is refused.
 */
export function isEmptyLock(text: string): boolean {
  const file = parseObject(text);
  return file !== undefined && Object.keys(file).length === 0;
}

/** @throws LockFileError */
export function parseLockFile(text: string): LockFile {
  const file = parseObject(text);
  if (file === undefined) failFile('is not JSON');
  if (file.version !== VERSION)
    failFile(`has version ${quote(file.version)}, and this Postern reads version ${VERSION}`);
  return { servers: readMap(file.servers, 'servers', readServer) };
}

function failFile(problem: string): never {
  throw new LockFileError(
    `${LOCK_FILE_NAME} ${problem}. Take it from your version control again, or remove it and run \`postern lock\` to approve what the servers say now.`,
  );
}

function readServer(value: unknown, place: string): LockedServer {
  if (!isObject(value)) failFile(`has no object at ${place}`);
  // Skills are left out if there are none.
  const { instructions, prompts, skills = {}, tools } = value;
  return {
    instructions:
      instructions === undefined
        ? undefined
        : readFingerprints(instructions, `${place}.instructions`),
    prompts: readMap(prompts, `${place}.prompts`, readFingerprints),
    skills: readMap(skills, `${place}.skills`, readFingerprints),
    tools: readMap(tools, `${place}.tools`, readFingerprints),
  };
}

function readMap<Value>(
  value: unknown,
  place: string,
  read: (value: unknown, place: string) => Value,
): ReadonlyMap<string, Value> {
  if (!isObject(value)) failFile(`has no object at ${place}`);
  return new Map(
    Object.entries(value).map(([name, one]) => [name, read(one, `${place}.${quote(name, 100)}`)]),
  );
}

function readFingerprints(value: unknown, place: string): readonly Fingerprint[] {
  if (!Array.isArray(value)) failFile(`has no list at ${place}`);
  return value.map((one: unknown) => {
    if (!isObject(one) || typeof one.sha256 !== 'string' || !SHA256.test(one.sha256))
      failFile(`has no SHA-256 at ${place}`);
    return { sha256: one.sha256, parts: readParts(one.parts) };
  });
}

const SHA256 = /^[0-9a-f]{64}$/;

/** Parts only describe a difference, so one that is not a string is left out. */
function readParts(value: unknown): Fingerprint['parts'] {
  const parts = isObject(value) ? Object.entries(value) : [];
  return Object.fromEntries(
    parts.flatMap(([name, part]) => (typeof part === 'string' ? [[name, part]] : [])),
  );
}

/** Sorted, with one line for each item, so that version control shows what was approved. */
export function writeLockFile({ servers }: LockFile): string {
  return `${writeObject({ version: VERSION, servers: mapValues(servers, writeServer) }, LEVELS)}\n`;
}

const writeServer = ({ instructions, prompts, skills, tools }: LockedServer): JsonObject => ({
  ...(instructions && { instructions: sortFingerprints(instructions) }),
  prompts: mapValues(prompts, sortFingerprints),
  ...(skills.size > 0 && { skills: mapValues(skills, sortFingerprints) }),
  tools: mapValues(tools, sortFingerprints),
});

/** Sorts the members of an object by name. */
const mapValues = <Value, Written>(
  map: ReadonlyMap<string, Value>,
  write: (value: Value) => Written,
): ReadonlyMap<string, Written> =>
  new Map([...map].sort(([a], [b]) => compare(a, b)).map(([name, value]) => [name, write(value)]));

const sortFingerprints = (all: readonly Fingerprint[]) =>
  [...all].sort((a, b) => compare(a.sha256, b.sha256));

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));

/** Objects around an item: the file, its servers, a server, its tools. */
const LEVELS = 4;

function writeObject(value: unknown, levels: number, indent = ''): string {
  const members =
    value instanceof Map ? [...value] : levels > 0 && isObject(value) ? Object.entries(value) : [];
  if (levels === 0 || members.length === 0) return toVisibleJson(value instanceof Map ? {} : value);
  const lines = members.map(
    ([name, one]) =>
      `${indent}  ${toVisibleJson(name)}: ${writeObject(one, levels - 1, `${indent}  `)}`,
  );
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

// §22.6: access to the file postern.lock, for a gateway whose operators approve on their page. The command line gives it:
// features touch no files.

export interface StoredLock {
  readonly path: string;
  /** The current content; undefined if nothing is locked. @throws LockFileError for an unusable file. */
  read(): LockFile | undefined;
  /** Says why it cannot be written, such as `EACCES`; undefined if no reason is known. */
  findObstacle(): Promise<string | undefined>;
  /**
   * Writes the file, whole or not at all, and resolves once the gateway uses it. False if it was written but could not be loaded:
   * the log says why.
   *
   * @throws Error of the operating system
   */
  save(file: LockFile): Promise<boolean>;
}

// §18.7: fingerprints of tools, prompts, skills and instructions.

/** Approved form of one item. */
export interface Fingerprint {
  /** SHA-256 (hex) of the RFC 8785 form of the locked members. */
  readonly sha256: string;
  /** First characters of each member's own hash: they show what changed, and are not used for decisions. */
  readonly parts: Readonly<Record<string, string>>;
}

/** Locked members: those that a client's model reads, and the name that it calls. */
const MEMBERS: Readonly<Record<LockedKind, readonly string[]>> = {
  tool: ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'],
  prompt: ['name', 'title', 'description', 'arguments'],
  // Includes the digest of each file: hosts load exactly what was approved.
  skill: ['uri', 'frontmatter', 'resources'],
  instructions: ['text'],
};

const PART_CHARACTERS = 8;

/** `item` as the server wrote it; the text of instructions. Undefined if it nests too deeply. */
export function computeFingerprint(kind: LockedKind, item: unknown): Fingerprint | undefined {
  const sha256 = computeSha256(kind, item);
  if (sha256 === undefined) return undefined;
  const parts = Object.entries(selectMembers(kind, item)).map(([name, value]) => [
    name,
    digestJson(value).slice(0, PART_CHARACTERS),
  ]);
  return { sha256, parts: Object.fromEntries(parts) };
}

/** Only the hash, for each list and call. */
export function computeSha256(kind: LockedKind, item: unknown): string | undefined {
  try {
    return digestJson(selectMembers(kind, item));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

export function selectMembers(kind: LockedKind, item: unknown): JsonObject {
  const source = isObject(item) ? item : { text: item };
  const present = MEMBERS[kind].filter((name) => source[name] !== undefined);
  return Object.fromEntries(present.map((name) => [name, source[name]]));
}

// §18.7: a server in the form that would be approved.

/** @throws UpstreamError for an item that nests too deeply to be approved. */
export async function toLockedServer(content: ServerContent, clock: Clock): Promise<LockedServer> {
  const { instructions } = content;
  const work = createTurns(clock);
  const items = indexItems(content);

  async function toLockedItems(kind: LockedItemKind) {
    const locked = new Map<string, readonly Fingerprint[]>();
    for (const [name, item] of items[kind]) {
      locked.set(name, [requireFingerprint(kind, item)]);
      if (work.isOver()) await work.next();
    }
    return locked;
  }

  return {
    instructions:
      instructions === undefined ? undefined : [requireFingerprint('instructions', instructions)],
    prompts: await toLockedItems('prompt'),
    skills: await toLockedItems('skill'),
    tools: await toLockedItems('tool'),
  };
}

/** Keyed by name or URI. The first of two with one name counts, as in the catalogue. */
export function indexItems(
  content: ServerContent,
): Readonly<Record<LockedItemKind, ReadonlyMap<string, RawItem>>> {
  function index(kind: LockedItemKind): ReadonlyMap<string, RawItem> {
    const { list, key } = LOCKED_ITEMS[kind];
    const found = new Map<string, RawItem>();
    for (const item of content[list].items) {
      const name = item[key];
      if (typeof name === 'string' && !found.has(name)) found.set(name, item);
    }
    return found;
  }

  return { prompt: index('prompt'), skill: index('skill'), tool: index('tool') };
}

function requireFingerprint(kind: LockedKind, item: unknown) {
  const fingerprint = computeFingerprint(kind, item);
  if (fingerprint === undefined)
    throw new UpstreamError('invalid', `one of its ${kind}s nests too deep to be approved`);
  return fingerprint;
}
