// §28: reads the calls in an audit log.

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

/** The effect of the rules on the call. */
export type CallResult =
  | 'allowed'
  | 'denied'
  | 'scopes_missing'
  /** Stopped by something else: the lock, a guard, or a declined approval. */
  | 'stopped'
  /** No rule was evaluated, mostly because the name does not exist. */
  | 'unjudged';

/** Undefined for other events, such as logins, and for the start of a call whose end has its own line. */
type ReadLine = ReturnType<typeof readLine>;

/** @throws UsageError if the file cannot be read. */
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
    // The reader of `text` handles errors.
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

/** Rotated logs are mostly gzipped, whatever their name (RFC 1952 §2.3.1). Undefined if the input is empty. */
async function unzip(source: Readable) {
  const start = await readStart(source);
  if (start?.[0] !== 0x1f || start[1] !== 0x8b) return start && source;
  const unzipped = createGunzip();
  pipeline(source, unzipped, () => {
    // The reader handles errors.
  });
  return unzipped;
}

/** The first bytes, which stay in the stream; undefined if the stream is empty. */
function readStart(source: Readable): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    function look() {
      const piece: unknown = source.read();
      if (!(piece instanceof Buffer)) return;
      source.off('readable', look);
      // Synchronously: a stream that is fully read ends in the next turn.
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
  // A call without a name does not refer to an item.
  if (name === undefined) return undefined;
  return {
    /** ISO 8601; undefined for any other format. */
    time:
      typeof time === 'string' && ISO_8601.test(time) && !Number.isNaN(Date.parse(time))
        ? time
        : undefined,
    kind,
    /** As the client named it on its path. */
    name,
    /** True if the line contains the complete name. */
    isWhole: stripped !== true && !name.endsWith('…'),
    server: readText(line.server) ?? '',
    view: readText(line.view),
    user: readText(line.user),
    /** The user's issuer; undefined for `OIDC_ISSUER`. */
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
