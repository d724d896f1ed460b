// §26.2: guards that are not the gateway's own: asked over HTTP, interceptors of an MCP server, modules in this process.

import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { ConfigError } from '../../config/problem.ts';
import type { CancelSignal, toAbortSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  copyPlain,
  type Originals,
  parseExactJson,
  restoreNumbers,
  UnclearNumber,
} from '../../platform/exact-json.ts';
import { FetchError, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { decodeUtf8, findExceededBound, type JsonObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  ANSWER_BOUNDS,
  type AskedMessage,
  type AskGuard,
  createGuardLine,
  type Decision,
  GuardFailure,
  MAX_ANSWER_BYTES,
  PASS,
  readAnswer,
  readDecision,
  toSentText,
} from './ask-guard.ts';
import type { GuardUse, HttpGuardConfig, McpGuardConfig } from './guard-config.ts';
import {
  askInTurn,
  type Interceptor,
  nameEvent,
  readInterceptorPayload,
  readInterceptors,
  selectInterceptors,
  toInvocation,
} from './interceptors.ts';

export function createHttpGuard(
  { clock, fetch }: Pick<Runtime, 'clock' | 'fetch'>,
  config: HttpGuardConfig,
): AskGuard {
  const { url, timeoutMs } = config;
  const headers = {
    ...config.headers,
    'content-type': 'application/json',
    accept: 'application/json',
  };
  const line = createGuardLine();

  return function askOverHttp(message, { signal, user }) {
    const { guard, traceparent } = message;
    const body = toSentText({
      version: VERSION,
      ...toInvocation(message, guard, timeoutMs, clock.now()),
    });
    return line
      .run(() => send(body, traceparent, signal), user, signal)
      .then((answer) => readInterceptorPayload(readAnswer(answer), message));
  };

  async function send(
    body: string,
    traceparent: string | undefined,
    signal: Parameters<AskGuard>[1]['signal'],
  ): Promise<unknown> {
    const limit = createTimeLimit(clock, timeoutMs, signal);
    try {
      const response = await fetchWithLimits(
        fetch,
        url,
        {
          method: 'POST',
          headers: traceparent === undefined ? headers : { ...headers, traceparent },
          body,
        },
        { timeoutMs: timeoutMs + GRACE_MS, maxBytes: MAX_ANSWER_BYTES, signal: limit.signal },
      );
      if (response.status < 200 || response.status > 299) {
        throw new GuardFailure(`it answered ${response.status}`);
      }
      return parseAnswer(response.body);
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      const reason = limit.hasPassed()
        ? `it did not answer within ${timeoutMs} ms`
        : 'it cannot be reached, or its answer could not be read';
      throw new GuardFailure(reason, { cause: error.cause });
    } finally {
      limit.stop();
    }
  }
}

/** The shapes of this request, and of its answer. */
const VERSION = 'sep-2624';
/** The clock of the gateway decides; this is for a clock that stands still. */
const GRACE_MS = 5_000;

function parseAnswer(body: Buffer): unknown {
  const text = body.toString('utf8');
  const isBounded = findExceededBound(text, ANSWER_BOUNDS) === undefined;
  if (!isBounded || decodeUtf8(body) === undefined) throw new GuardFailure(NO_JSON);
  try {
    return parseExactJson(text);
  } catch {
    throw new GuardFailure(NO_JSON);
  }
}

const NO_JSON = 'its answer is no JSON';

/** Aborted when the time has passed, or nobody waits any more. */
function createTimeLimit(
  clock: Clock,
  ms: number,
  left: Parameters<typeof toAbortSignal>[0] | undefined,
) {
  const controller = new AbortController();
  let isOver = false;
  const leave = () => controller.abort(new Error('nobody waits for the answer any more'));
  const stopClock = clock.after(ms, () => {
    isOver = true;
    controller.abort(new Error('it took too long'));
  });
  if (left?.aborted) leave();
  left?.addEventListener('abort', leave);
  return {
    signal: controller.signal,
    hasPassed: () => isOver,
    stop() {
      stopClock();
      left?.removeEventListener('abort', leave);
    },
  };
}

// Interceptors of an MCP server behind the gateway (SEP-2624).

/**
 * Sends a request to a server of the file, on behalf of the gateway itself.
 *
 * @throws Error whose message says why there is no result, without what was sent.
 */
export type AskServer = (
  server: string,
  request: {
    readonly method: string;
    readonly params: JsonObject;
    readonly signal: CancelSignal | undefined;
    readonly timeoutMs: number;
    readonly traceparent: string | undefined;
  },
) => Promise<JsonObject>;

/** The time for which a list of interceptors is gone by. */
const LIST_MS = 60_000;
const MAX_PAGES = 20;

export function createMcpGuard(
  { clock }: Pick<Runtime, 'clock'>,
  config: McpGuardConfig,
  askServer: AskServer,
): AskGuard {
  const { server, interceptor: wanted, timeoutMs } = config;
  const line = createGuardLine();
  let listing: { readonly at: number; readonly all: Promise<readonly Interceptor[]> } | undefined;

  async function request(
    method: string,
    params: JsonObject,
    signal: CancelSignal | undefined,
    traceparent?: string,
  ): Promise<JsonObject> {
    try {
      return await askServer(server, { method, params, signal, timeoutMs, traceparent });
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'it gave no answer';
      throw new GuardFailure(`${method} failed: ${reason}`, { cause: error });
    }
  }

  async function fetchAll(): Promise<readonly Interceptor[]> {
    const all: Interceptor[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const params = typeof cursor === 'string' ? { cursor } : {};
      const result = await request('interceptors/list', params, undefined);
      all.push(...readInterceptors(result));
      cursor = result.nextCursor;
      if (typeof cursor !== 'string') return all;
    }
    throw new GuardFailure(`it lists its interceptors on more than ${MAX_PAGES} pages`);
  }

  function listAll(): Promise<readonly Interceptor[]> {
    const now = clock.monotonic();
    if (listing !== undefined && now - listing.at < LIST_MS) return listing.all;
    const next = { at: now, all: fetchAll() };
    listing = next;
    next.all.catch(() => {
      if (listing === next) listing = undefined;
    });
    return next.all;
  }

  async function findThem(event: string, phase: AskedMessage['phase']) {
    const all = await listAll();
    if (wanted === undefined) {
      const chosen = selectInterceptors(all, event, phase);
      // A guard that looks at nothing would let all pass, and nobody would know.
      if (chosen.length > 0) return chosen;
      throw new GuardFailure(`it has no interceptor for ${event} (${phase})`);
    }
    const chosen = all.filter(({ name }) => name === wanted);
    if (chosen.length === 0) throw new GuardFailure(`it has no interceptor ${wanted}`);
    return chosen;
  }

  async function invoke(
    { name, isAudit }: Interceptor,
    message: AskedMessage,
    { signal, user }: Parameters<AskGuard>[1],
  ): Promise<Decision> {
    const params = toInvocation(message, name, timeoutMs, clock.now());
    toSentText(params);
    const answer = await line.run(
      () => request('interceptor/invoke', params, signal, message.traceparent),
      user,
      signal,
    );
    const decision = readInterceptorPayload(readAnswer(readExact(answer)), message);
    return isAudit ? PASS : decision;
  }

  return async function askInterceptors(message, asker) {
    const { method, phase, value } = message;
    const chosen = await findThem(nameEvent(method, value), phase);
    return askInTurn(chosen, value, (one, current) =>
      invoke(one, { ...message, value: current }, asker),
    );
  };
}

// A guard that is a module of the operator's, in this process.

/** @throws ConfigError where the module cannot be loaded, or exports no guard. */
export async function loadModuleGuard(
  { clock }: Pick<Runtime, 'clock'>,
  name: string,
  { path, timeoutMs }: Extract<GuardUse, { kind: 'module' }>,
): Promise<AskGuard> {
  const judge = await importJudge(name, path);

  return function askModule(message) {
    const originals: Originals = new Map();
    // A copy: of the value itself it may be known how it was written, and the guard may change it in place.
    const value = copyPlain(message.value, originals);
    return ask({ ...message, value }, (answer) => {
      const decision = readDecision(answer);
      return decision.kind === 'change'
        ? { kind: 'change', value: restore(decision.value, message.value, originals) }
        : decision;
    });
  };

  function ask(message: AskedMessage, read: (answer: unknown) => Decision) {
    const answer = judge(message);
    return answer instanceof Promise
      ? waitAtMost(clock, timeoutMs, answer).then(read)
      : read(answer);
  }
}

function restore(value: unknown, before: unknown, originals: Originals): unknown {
  try {
    return restoreNumbers(value, before, originals);
  } catch (cause) {
    throw cause instanceof UnclearNumber ? new GuardFailure(UNCLEAR, { cause }) : cause;
  }
}

const UNCLEAR =
  'it made a list shorter, or longer, in which JavaScript takes several numbers for one; look at such lists with a guard over HTTP';

/** Node.js keeps each address that it has imported: a file that was written since has another one. */
async function importJudge(
  name: string,
  path: string,
): Promise<(message: AskedMessage) => unknown> {
  const fail = (reason: string): never => {
    throw new ConfigError([`The guard ${name}: its module ${path} ${reason}`]);
  };
  let exported: unknown;
  try {
    const address = pathToFileURL(path);
    address.search = `written=${statSync(path).mtimeMs}`;
    exported = await import(address.href);
  } catch (error) {
    return fail(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  }
  const judge = readDefault(exported);
  return judge ?? fail('has no default export that is a function.');
}

function readDefault(exported: unknown): ((message: AskedMessage) => unknown) | undefined {
  if (typeof exported !== 'object' || exported === null || !('default' in exported)) {
    return undefined;
  }
  const judge = exported.default;
  return typeof judge === 'function' ? (message) => judge(message) : undefined;
}

/** @throws GuardFailure when it takes longer. */
function waitAtMost<Answer>(clock: Clock, ms: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stop = clock.after(ms, () =>
      reject(new GuardFailure(`it did not answer within ${ms} ms`)),
    );
    answer.finally(stop).then(resolve, reject);
  });
}
