// §18.3: the program of a server: state shared by all of its processes.

import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import type { Readable } from 'node:stream';
import { PASSED_ON } from '../../config/file/expand.ts';
import type { Env } from '../../config/setting.ts';
import type { UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { cutPieces, PieceList } from '../../platform/pieces.ts';
import { findSecretArguments } from '../../platform/secret-texts.ts';
import { dropTerminalSequences, shorten } from '../../platform/text.ts';
import { createLogThrottle, createWarnThrottle } from '../../platform/throttle.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

/** Servers of the session era may ignore `server/discover`, or even exit when they receive it. */
export type FirstRequest = 'server/discover' | 'initialize';

const FIRST: FirstRequest = 'server/discover';

export type Program = ReturnType<typeof openProgram>;

/** The process that starts the programs of servers. */
export interface ProgramHost {
  /** The gateway's environment: the server gets the variables of `PASSED_ON` from it, and those of proxies. */
  readonly environment: Env;
  /** Inherited file descriptors of the gateway, as `findInheritedFiles` found them. */
  readonly inheritedFiles: readonly number[];
  /** Called whenever the number of a server's processes changes. */
  onProcessCount?(server: string, count: number): void;
}

export function openProgram(
  { config: settings, clock, log }: UpstreamRuntime,
  config: StdioUpstreamConfig,
  share: ProcessShare,
  host: ProgramHost,
) {
  const { name: server } = config;
  let processes = 0;
  let strayAnswers = 0;
  let isUnattributedNoted = false;
  const { env, runAs, proxyEnvironment } = config;
  // A user without an entry in the system has no home folder: the gateway's is used.
  const ofUser: Env =
    runAs === undefined
      ? host.environment
      : { ...host.environment, HOME: runAs.home ?? host.environment.HOME, USER: runAs.name };
  // An empty variable counts as unset: compose files pass empty variables.
  const passedOn = PASSED_ON.flatMap((name) => {
    const value = ofUser[name];
    return value ? [[name, value] as const] : [];
  });
  const warnOfStrayAnswers = createWarnThrottle(clock, () =>
    log.warn(
      `The server ${server} sent answers to no request, or second ones. They were dropped.`,
      { server, count: strayAnswers },
    ),
  );
  const proxies = readProxyVariables(host.environment, proxyEnvironment, env);
  const withoutUser = Object.keys(proxies).filter(
    (name) => USER_INFO.test(host.environment[name] ?? '') && !USER_INFO.test(proxies[name] ?? ''),
  );
  if (withoutUser.length > 0)
    log.info(
      `The MCP server ${server} gets ${withoutUser.join(', ')} without user name and password. If it cannot reach the network, set "proxyEnvironment": true for it in the configuration file.`,
      { server },
    );
  return {
    config,
    clock,
    /** `MAX_UPSTREAM_BYTES`: the longest line of standard output, and the maximum of unread input. */
    maxBytes: settings.upstreams.maxBytes,
    share,
    /** The complete environment of a process. */
    environment: {
      ...Object.fromEntries(passedOn),
      ...proxies,
      ...env,
    },
    inheritedFiles: host.inheritedFiles,
    output: createOutputLog(
      config,
      findSecretArguments(Object.values(proxies).flatMap((value) => value ?? [])),
      { log, clock },
    ),
    /** The first request to a process, as learned from earlier processes. */
    first: FIRST,
    onStrayAnswer() {
      strayAnswers += 1;
      warnOfStrayAnswers();
    },
    /** A shared process tried to send a request to a client. */
    onUnattributed(method: string) {
      if (isUnattributedNoted) return;
      isUnattributedNoted = true;
      const needsRoots = method === 'roots/list' && !config.roots;
      // The server itself may not say which of its tools are missing because of this.
      log.warn(
        `The MCP server ${server} wanted to ask a client (${method}) and was refused: with "isolation": "shared" all users share one process, which cannot say which user it asks. If it may ask, set "isolation": "user"${needsRoots ? ' and "roots": true' : ''} for it in the configuration file. Tools that it lists only for clients that it can ask appear then, too.`,
        { server },
      );
    },
    /** A process was started (1), or has ended (-1). */
    countProcess(change: 1 | -1) {
      processes += change;
      host.onProcessCount?.(server, processes);
    },
  };
}

// §18.3: the proxies of the gateway, by the variables that other programs read, too.

const PROXY_VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [
  name,
  name.toLowerCase(),
]);

/**
 * `isPassed` is `proxyEnvironment`: true for all values, false for none, and undefined for values without user name and password. A
 * variable that the server's own `env` has is left out in both spellings, since programs differ in which one they prefer.
 */
function readProxyVariables(environment: Env, isPassed: boolean | undefined, own: Env): Env {
  if (isPassed === false) return {};
  const taken = new Set(Object.keys(own).map((name) => name.toUpperCase()));
  const passedOn = PROXY_VARIABLES.flatMap((name) => {
    const value = environment[name];
    if (!value || taken.has(name.toUpperCase())) return [];
    return [[name, isPassed ? value : value.replace(USER_INFO, '$1')] as const];
  });
  if (passedOn.length === 0 || taken.has('NO_PROXY')) return Object.fromEntries(passedOn);
  // The gateway never uses a proxy for requests to this machine (docs/operations/network.md), and neither must its programs.
  const { NO_PROXY, no_proxy = NO_PROXY } = environment;
  const exempt = no_proxy === '*' ? '*' : [no_proxy, THIS_MACHINE].filter(Boolean).join();
  return { ...Object.fromEntries(passedOn), NO_PROXY: exempt, no_proxy: exempt };
}

const THIS_MACHINE = 'localhost,127.0.0.1,::1';

/** Matches up to the last @, also in a value that is not a valid URL, so that no part of a password remains. */
const USER_INFO = /^([a-z][a-z\d+.-]*:\/\/)?.*@/is;

// Open files of the gateway that every program would inherit, whichever user it runs as. Node.js opens none this way, but LMDB
// does with the file of the embedded store, which would then be readable and writable; the gateway's parent process may have done
// so as well.

const DESCRIPTORS = '/proc/self/fdinfo';
/** A flag of open(2). */
const CLOSES_AT_EXEC = 0o2000000;

/**
 * Finds their descriptors, on Linux. Called once, when the store is open: later there may be thousands of connections to look
 * through.
 */
export function findInheritedFiles(): readonly number[] {
  try {
    return readdirSync(DESCRIPTORS)
      .map(Number)
      .filter((descriptor) => descriptor > 2 && isInherited(descriptor));
  } catch {
    return [];
  }
}

function isInherited(descriptor: number) {
  try {
    const info = readFileSync(`${DESCRIPTORS}/${descriptor}`, 'utf8');
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(info) ?? [];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSES_AT_EXEC) === 0;
  } catch {
    // The descriptor of the folder itself, which was open while it was read.
    return false;
  }
}

/** Calls `start` with three pipes for a program, and with /dev/null in place of each inherited file. */
export function startWithout<Started>(
  inherited: readonly number[],
  start: (stdio: ['pipe', 'pipe', 'pipe']) => Started,
): Started {
  const nothing = openSync(devNull, 'r');
  const rest = Array.from({ length: Math.max(2, ...inherited) - 2 }, (_, index) =>
    inherited.includes(index + 3) ? nothing : ('ignore' as const),
  );
  const stdio: ['pipe', 'pipe', 'pipe'] = ['pipe', 'pipe', 'pipe'];
  // Node.js accepts more entries than its type allows.
  Object.assign(stdio, [...stdio, ...rest]);
  try {
    return start(stdio);
  } finally {
    closeSync(nothing);
  }
}

// §18.3: writes a server's stderr, and stray lines, to the gateway's log.

const MAX_CHARACTERS = 1000;

/** Shorter secrets, such as `1` or `true`, occur in any text. */
const MIN_SECRET = 6;

/** Control characters and line breaks except LF, and characters that change the reading direction. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+/g;

function createOutputLog(
  { name: server, env, secretArguments }: StdioUpstreamConfig,
  proxyPasswords: readonly string[],
  { log, clock }: Pick<UpstreamRuntime, 'log' | 'clock'>,
) {
  const secrets = listSecretLines([...Object.values(env), ...secretArguments, ...proxyPasswords]);
  const throttle = createLogThrottle(clock, (kind, leftOut) =>
    log.warn(`${leftOut} more lines of the ${kind} of the server ${server} were left out.`, {
      server,
    }),
  );

  function toText(line: Buffer) {
    let text = line.toString('utf8');
    for (const secret of secrets) text = text.replaceAll(secret, '[secret]');
    return shorten(dropTerminalSequences(text).replace(CONTROL, ' '), MAX_CHARACTERS);
  }

  function writeLine(kind: string, line: Buffer) {
    if (line.length > 0 && throttle.countLine(kind))
      log.info(`${server}: ${toText(line)}`, { server });
  }

  const warnOfStrayLines = createWarnThrottle(clock, (line: Buffer) =>
    log.warn(
      `The server ${server} wrote to its standard output what is no message of MCP. It was skipped; a server must log to its error output.`,
      { server, line: toText(line) },
    ),
  );

  return {
    /** Prepares a line for the log: short, escaped, and without secrets. */
    toText,
    /** Logs a line of stderr. */
    writeErrorLine: (line: Buffer) => writeLine('error output', line),
    /** Logs a line of stdout that is not a message, like stderr, with a warning once a minute. */
    writeStrayLine(line: Buffer) {
      if (line.length > 0) warnOfStrayLines(line);
      writeLine('standard output', line);
    },
  };
}

/** Long values first, so that a shorter one contained in them does not split them; multi-line values by line. */
const listSecretLines = (secrets: readonly string[]): readonly string[] =>
  [...new Set(secrets)]
    .flatMap((value) => value.split('\n'))
    .filter((value) => value.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length);

// §18.3: reads a sample of a process's stderr: the process may write a million lines per second, of which the log accepts a hundred
// per minute.

/** Maximum bytes read per line. */
const MAX_LINE = 4096;
/** Bytes that are read at the beginning and at the end of a large chunk. */
const LOOKED_AT = 8192;
const LINES_PER_MS = 10;
/** A chunk with fewer lines needs no pause. */
const MANY_LINES = 1000;
/** The pause after a large chunk, in milliseconds. */
const SHORT_PAUSE_MS = 10;

/** `onLine` gets each line, or its beginning. Back-pressure stops the process while it writes too much. */
export function readErrorOutput(
  output: Readable,
  clock: Clock,
  onLine: (line: Buffer) => void,
): void {
  let lines = 0;
  const takeLine = (line: readonly Buffer[]) => {
    lines += 1;
    onLine(Buffer.concat(line));
  };
  const splitter = createLineSplitter(MAX_LINE, { onLine: takeLine, onTooLong: takeLine });

  output.on('data', (piece: Buffer) => {
    lines = 0;
    const parts = selectLines(piece);
    for (const part of parts) splitter.add(part);
    if (parts.length === 1 && lines < MANY_LINES) return;
    output.pause();
    clock.after(Math.max(SHORT_PAUSE_MS, lines / LINES_PER_MS), () => output.resume());
  });
}

/** Selects whole lines of a large chunk: a truncated secret would not be recognized. */
function selectLines(piece: Buffer): readonly Buffer[] {
  if (piece.length <= 2 * LOOKED_AT) return [piece];
  const firstEnd = piece.lastIndexOf(LINE_FEED, LOOKED_AT - 1) + 1;
  const lastStart = piece.indexOf(LINE_FEED, piece.length - LOOKED_AT) + 1;
  if (firstEnd === 0 || lastStart === 0) return [piece];
  return [piece.subarray(0, firstEnd), piece.subarray(lastStart)];
}

/** Called by the line splitter. */
interface LineHandlers {
  /** A whole line, without its line end, in pieces as received: parts of larger buffers. */
  onLine(line: readonly Buffer[], length: number): void;
  /** The beginning of a line longer than `maxBytes`; the rest is dropped. */
  onTooLong(start: readonly Buffer[]): void;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Splits a stream of bytes into lines. */
export function createLineSplitter(maxBytes: number, { onLine, onTooLong }: LineHandlers) {
  const held = new PieceList();
  let isSkipping = false;

  /** Takes a part of the current line; `isLast` if the line ends with it. */
  function take(piece: Buffer, isLast: boolean) {
    const length = held.byteLength + piece.length;
    if (!isSkipping && length > maxBytes) {
      held.add(piece.subarray(0, maxBytes - held.byteLength));
      isSkipping = true;
      onTooLong(held.take());
    } else if (!isSkipping) {
      held.add(piece);
      if (isLast) {
        const line = held.take();
        const hasReturn = line.at(-1)?.at(-1) === CARRIAGE_RETURN;
        if (hasReturn) onLine(cutPieces(line, 0, 1), length - 1);
        else onLine(line, length);
      }
    }
    if (isLast) isSkipping = false;
  }

  return {
    add(chunk: Buffer) {
      let start = 0;
      for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
        take(chunk.subarray(start, end), true);
        start = end + 1;
      }
      if (start < chunk.length) take(chunk.subarray(start), false);
      held.releaseChunks();
    },
    /** Bytes of the incomplete line. */
    get heldBytes() {
      return held.byteLength;
    },
  };
}
