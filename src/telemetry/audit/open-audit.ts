// §21.1: writes one JSON line for each event, before the event's request is answered.

import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { fail, toGatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { describeCode } from '../../platform/error-code.ts';
import { toVisibleJson } from '../../platform/invisible.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import {
  type ClockAndLog,
  createLineOutput,
  type LineOutput,
  standardOutput,
} from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Audit, AuditEvent, AuditedAction, AuditedEnd } from './audit.ts';

/** Undefined without `AUDIT_LOG`. @throws AuditLogError if its file cannot be opened. */
export function openAudit(
  { audit: { destination, required: isRequired }, oauth }: Pick<Config, 'audit' | 'oauth'>,
  { clock, log, metrics }: ClockAndLog & { readonly metrics: Metrics },
): Audit | undefined {
  if (destination === undefined) return undefined;
  const sink =
    destination.kind === 'stdout'
      ? createOutputSink(standardOutput, () => {})
      : openPathSink(destination.path, clock);
  const renderLine = createRenderLine(clock, oauth.provider?.issuer);
  /** The number of lines lost since the last successful write. */
  let lost = 0;
  let isWritable = true;
  const sayLost = createWarnThrottle(clock, (cause: unknown) =>
    log.error(
      isRequired
        ? 'The audit log cannot be written. Calls are refused until it can (AUDIT_REQUIRED=true). Make room, or check AUDIT_LOG.'
        : 'The audit log cannot be written, and lines are lost. Make room, or check AUDIT_LOG.',
      { cause },
    ),
  );

  /**
   * Takes the line about lost lines, which precedes the next one. The caller writes it, or gives it back with `recordFailure`.
   */
  function takeLost() {
    const count = lost;
    lost = 0;
    const line =
      count === 0 ? '' : renderLine({ event: 'gap', lost: count }, { outcome: 'failure' });
    return { count, line };
  }

  /** `event` is the event of the written line; undefined if only the lost lines were reported. */
  function recordSuccess(taken: number, event?: AuditEvent) {
    isWritable = true;
    if (taken > 0) log.warn('The audit log can be written again.', { lostLines: taken });
    if (event !== undefined) metrics.recordAuditLine(event, 'success');
  }

  function recordFailure(taken: number, cause: unknown, event?: AuditEvent) {
    isWritable = false;
    lost += event === undefined ? taken : taken + 1;
    sayLost(cause);
    if (event !== undefined) metrics.recordAuditLine(event, 'error');
  }

  function write(action: AuditedAction, end: AuditedEnd, seconds?: number) {
    const taken = takeLost();
    try {
      const line = renderLine(action, end, seconds, sink.getMaxLineBytes());
      sink.write(taken.line + line);
    } catch (cause) {
      recordFailure(taken.count, cause, action.event);
      return;
    }
    recordSuccess(taken.count, action.event);
  }

  /** @throws Error from the system */
  async function writeThrough(line: string, event?: AuditEvent) {
    const taken = takeLost();
    try {
      await sink.writeThrough(taken.line + line);
    } catch (cause) {
      recordFailure(taken.count, cause, event);
      throw cause;
    }
    recordSuccess(taken.count, event);
  }

  /** @throws GatewayError `audit_unavailable` */
  const writeStart = (action: AuditedAction) =>
    writeThrough(renderLine(action, { outcome: 'started' }), action.event).catch(() =>
      fail('audit_unavailable', { headers: { 'Retry-After': '5' } }),
    );

  /** A separate function, so that the closure retains nothing of the work while it runs. */
  function writeEnd<Result>(action: AuditedAction, startedAt: number, working: Promise<Result>) {
    const writeOutcome = (end: AuditedEnd) =>
      write(action, end, (clock.monotonic() - startedAt) / 1000);
    return working.then(
      (result) => {
        writeOutcome({ outcome: 'success' });
        return result;
      },
      (thrown: unknown) => {
        writeOutcome({ outcome: 'failure', reason: toGatewayError(thrown).key });
        throw thrown;
      },
    );
  }

  return {
    isRequired,
    writeStart,
    write,
    async run(action, work) {
      const startedAt = clock.monotonic();
      if (isRequired) await writeStart(action);
      return writeEnd(action, startedAt, work());
    },
    async checkIsWritable() {
      if (!isRequired || isWritable) return;
      // Probes whether there is space again: a replica that is not ready gets no calls that would show it.
      await writeThrough('');
    },
    close: sink.close,
  };
}

/** Maximum characters per text. */
const MAX_TEXT = 255;
/** Bytes of a line without the claims for rules. Longer lines come from callers with text that has to be escaped. */
const MAX_LINE_BYTES = 4096;

/** `defaultIssuer` is `OIDC_ISSUER`: lines about its users omit the issuer. */
const createRenderLine =
  (clock: Clock, defaultIssuer: string | undefined) =>
  (
    action: AuditedAction | Gap,
    end: AuditedEnd,
    seconds?: number,
    maxLineBytes = MAX_LINE_BYTES,
  ): string => {
    const now = clock.now();
    const { user, issuer } = end.user === undefined ? action : end;
    let maxText = MAX_TEXT;
    const cut = (text: string | undefined) =>
      text !== undefined && text.length > maxText ? `${text.slice(0, maxText)}…` : text;
    const resource = action.resource && stripUri(action.resource);
    // JSON omits undefined members.
    const describe = (who?: JsonObject) => ({
      time: new Date(now).toISOString(),
      event: action.event,
      outcome: end.outcome,
      reason: cut(end.reason),
      user: cut(user),
      issuer: issuer === defaultIssuer ? undefined : cut(issuer),
      client: cut(end.client ?? action.client),
      grant: end.grant ?? action.grant,
      ip: action.ip,
      who,
      view: cut(action.view),
      server: end.server ?? action.server,
      tool: cut(action.tool),
      prompt: cut(action.prompt),
      resource: cut(resource),
      stripped: resource === action.resource ? undefined : true,
      action: action.action,
      target: cut(action.target),
      by: action.by,
      lost: 'lost' in action ? action.lost : undefined,
      duration: seconds === undefined ? undefined : Math.round(seconds * 1e6) / 1000,
      trace: action.trace,
    });
    for (; ; maxText = Math.floor(maxText / 2)) {
      const text = `${toVisibleJson(describe())}\n`;
      const bytes = Buffer.byteLength(text);
      if (maxText !== 0 && bytes > MAX_LINE_BYTES) continue;
      if (action.who === undefined) return text;
      const who = fitMembers(action.who, maxLineBytes - bytes);
      return `${toVisibleJson(describe(who))}\n`;
    }
  };

/** A member that does not fit is omitted as a whole: half of a user's groups would be mistaken for all of them. */
function fitMembers(who: JsonObject, maxBytes: number): JsonObject {
  let left = maxBytes - MEMBER_BYTES;

  function selectFitting(members: JsonObject): JsonObject {
    const fitting = Object.entries(members).filter(([name, value]) => {
      const bytes = Buffer.byteLength(toVisibleJson({ [name]: value }));
      if (bytes > left) return false;
      left -= bytes;
      return true;
    });
    return Object.fromEntries(fitting);
  }

  const { claims, ...others } = who;
  const fitting = selectFitting(others);
  if (!isObject(claims)) return fitting;
  left -= MEMBER_BYTES;
  return { ...fitting, claims: selectFitting(claims) };
}

/** `,"claims":{}`. */
const MEMBER_BYTES = 12;

/** The entry in the audit log that says that lines are missing. */
interface Gap extends AuditedAction {
  readonly event: 'gap';
  readonly lost: number;
}

// §21.1: the destinations of lines: a file to append to, or standard output, which the log also uses.

interface LineSink {
  /** Longer lines could be interleaved with those of other processes. */
  getMaxLineBytes(): number;
  /**
   * Writes in one piece, because several processes may write to the same place. If a program reads the other end, lines may wait
   * for it.
   *
   * @throws Error from the system, also if the line was written only in part
   */
  write(line: string): void;
  /** Resolves once the system has the line. @throws Error as `write` does, synchronously or by rejection */
  writeThrough(line: string): undefined | Promise<void>;
  close(): void;
}

/** An invalid AUDIT_LOG: a one-line message for the operator, without a stack. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
}

/** Bytes that are written to a pipe atomically (PIPE_BUF). */
const MAX_PIPED_BYTES = 4096;
/** The system appends to a file atomically, whatever the length: this limit is for readers. */
const MAX_APPENDED_BYTES = 32_768;

/** Lines not read yet. The log may use a little more, so that it can report lost lines. */
const MAX_WAITING_BYTES = 1_048_576;

const createOutputSink = (output: LineOutput, close: () => void): LineSink => ({
  getMaxLineBytes: () => MAX_PIPED_BYTES,
  write: (line) => output.write(line, MAX_WAITING_BYTES),
  writeThrough: (line) => output.writeThrough(line, MAX_WAITING_BYTES),
  close() {
    output.flush();
    close();
  },
});

/** Milliseconds that lines may still go to a renamed file for. */
const RENAMED_MS = 1000;

/**
 * Continues in a new file after this one was renamed or removed (log rotation).
 *
 * @throws AuditLogError
 */
function openPathSink(path: string, clock: Clock): LineSink {
  let open: ReturnType<typeof openPath>;
  try {
    open = openPath(path, clock);
  } catch (error) {
    throw new AuditLogError(
      `AUDIT_LOG: ${path} cannot be opened for writing (${describeCode(error)}). Its folder must exist, and this user must be allowed to read and write there.`,
    );
  }
  let checkedAt = clock.monotonic();

  function followRename(): LineSink {
    const now = clock.monotonic();
    if (now - checkedAt < RENAMED_MS) return open.sink;
    if (!isAt(path, open.file)) {
      const next = openPath(path, clock);
      open.sink.close();
      open = next;
    }
    checkedAt = now;
    return open.sink;
  }

  return {
    getMaxLineBytes: () => open.sink.getMaxLineBytes(),
    write: (line) => followRename().write(line),
    writeThrough: (line) => followRename().writeThrough(line),
    close: () => open.sink.close(),
  };
}

const MODE = 0o640;

/** Opens a file, or a pipe or device with a path. */
function openPath(path: string, clock: Clock) {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() !== false;
  const { O_WRONLY, O_APPEND, O_NONBLOCK } = constants;
  const file = isFile
    ? openSync(path, 'a+', MODE)
    : openSync(path, O_WRONLY | O_APPEND | O_NONBLOCK);
  const close = () => closeSync(file);
  if (!isFile) return { file, sink: createOutputSink(createLineOutput(file, clock), close) };
  const write = createAppendLine(file);
  const getMaxLineBytes = () => MAX_APPENDED_BYTES;
  return { file, sink: { getMaxLineBytes, write, writeThrough: write, close } };
}

function isAt(path: string, file: number) {
  const found = statSync(path, { throwIfNoEntry: false });
  const open = fstatSync(file);
  return found !== undefined && found.ino === open.ino && found.dev === open.dev;
}

/**
 * A full disk leaves a partial line at the end of the file, perhaps from another process. The next line, from any process, begins
 * on a new line. Nothing is written between the check of the end and the write: after a partial line there is no space.
 */
function createAppendLine(file: number): (line: string) => undefined {
  /** The end of the file after this process's last line. */
  let end = 0;
  const last = Buffer.alloc(1);

  return function appendLine(line) {
    const { size } = fstatSync(file);
    const endsWithLine =
      size === 0 ||
      size === end ||
      (readSync(file, last, 0, 1, size - 1) === 1 && last[0] === NEWLINE);
    const bytes = Buffer.from(endsWithLine ? line : `\n${line}`);
    const written = writeSync(file, bytes);
    if (written === bytes.length) {
      end = size + written;
      return;
    }
    // Writing the next byte returns the system's error. If it succeeds, it terminates the partial line.
    writeSync(file, '\n');
    throw new Error(`Only ${written} of ${bytes.length} bytes could be written`);
  };
}

const NEWLINE = 0x0a;
