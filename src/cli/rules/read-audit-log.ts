// §28: the calls of an audit log, as its lines have them.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import { getErrorCode, getMessage } from '../../platform/error-code.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import { UsageError } from '../command-line/errors.ts';
import type { InvokedProcess } from '../command-line/invocation.ts';

export type CallLine = Exclude<ReadLine, 'broken' | undefined>;

/** The part that rules had in how it ended. */
export type CallResult =
  | 'allowed'
  | 'denied'
  | 'scopes_missing'
  /** Something else did not let it through: the lock, a guard, somebody who was asked. */
  | 'stopped'
  /** No rule was asked: mostly a name that does not exist. */
  | 'unjudged';

/** Undefined for other lines of the log: logins, and the start of a call that has a line of its end, too. */
type ReadLine = ReturnType<typeof readLine>;

/** @throws UsageError for a file that cannot be read. */
export async function* readAuditLog(
  path: string,
  { stdin }: InvokedProcess,
): AsyncIterable<ReadLine> {
  if (path === '-' && stdin.isTTY)
    throw new UsageError(
      '--audit - reads standard input, which is a terminal here. Pipe the log into the command, or use --audit FILE.',
    );
  const text = new PassThrough();
  pipeline(path === '-' ? stdin : createReadStream(path), text, () => {
    // A failure is that of whoever reads the text.
  });
  try {
    const input = await unzip(text);
    if (input === undefined) return;
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line !== '') yield readLine(line);
    }
  } catch (error) {
    const said = getErrorCode(error) ?? getMessage(error);
    throw new UsageError(`--audit: ${path} cannot be read (${said}).`);
  }
}

/** Rotated logs are mostly gzipped, whatever they are called (RFC 1952 §2.3.1). Undefined where there is nothing in it. */
async function unzip(source: Readable): Promise<Readable | undefined> {
  const start = await readStart(source);
  if (start?.[0] !== 0x1f || start[1] !== 0x8b) return start && source;
  const unzipped = createGunzip();
  pipeline(source, unzipped, () => {
    // As above.
  });
  return unzipped;
}

/** Its first bytes, which are read once more; undefined where it ends without any. */
function readStart(source: Readable): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    function look() {
      const piece: unknown = source.read();
      if (!(piece instanceof Buffer)) return;
      source.off('readable', look);
      // At once: a stream whose all is read ends in the next turn.
      source.unshift(piece);
      resolve(piece);
    }
    source
      .once('error', reject)
      .once('end', () => resolve(undefined))
      .on('readable', look);
  });
}

const EVENTS: Readonly<Record<string, ItemKind>> = {
  tool_call: 'tool',
  prompt_get: 'prompt',
  resource_read: 'resource',
};

function readLine(text: string) {
  const line = parseObject(text);
  if (line === undefined) return 'broken' as const;
  const { event, outcome, time, stripped, who } = line;
  const kind =
    typeof event === 'string' && Object.hasOwn(EVENTS, event) ? EVENTS[event] : undefined;
  if (kind === undefined || outcome === 'started') return undefined;
  const name = readText(line[kind]);
  // A call that names nothing is about nothing.
  if (name === undefined) return undefined;
  return {
    /** ISO 8601; undefined for anything else. */
    time:
      typeof time === 'string' && ISO_8601.test(time) && !Number.isNaN(Date.parse(time))
        ? time
        : undefined,
    kind,
    /** As the client named it at its path. */
    name,
    /** True if the line has all of the name. */
    isWhole: stripped !== true && !name.endsWith('…'),
    server: readText(line.server) ?? '',
    view: readText(line.view),
    user: readText(line.user),
    /** The issuer of the user; undefined for those of `OIDC_ISSUER`. */
    issuer: readText(line.issuer),
    client: readText(line.client),
    who: isObject(who) ? who : {},
    result: readResult(line),
  };
}

const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

const readText = (value: unknown) => (typeof value === 'string' ? value : undefined);

function readResult({ outcome, reason }: JsonObject): CallResult {
  if (outcome === 'denied') {
    if (reason === 'rules') return 'denied';
    return reason === 'insufficient_scope' ? 'scopes_missing' : 'stopped';
  }
  return outcome === 'failure' && reason === 'invalid_params' ? 'unjudged' : 'allowed';
}
