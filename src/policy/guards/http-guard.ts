// §26.2: a guard that is asked over HTTP.

import type { toAbortSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import { parseExactJson } from '../../platform/exact-json.ts';
import { FetchError, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { decodeUtf8, findExceededBound } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { GuardFailure, readAnswer } from './decision.ts';
import type { HttpGuardConfig } from './guard-config.ts';
import { ANSWER_BOUNDS, createGuardLine, MAX_ANSWER_BYTES, toSentText } from './guard-line.ts';
import { readPayload, toInvocation } from './interceptors.ts';
import type { AskGuard } from './run-guard.ts';

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
      .then((answer) => readPayload(readAnswer(answer), message));
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
export const VERSION = 'sep-2624';
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
