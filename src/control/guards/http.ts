// §26.2: guards over HTTP.

import { requestHeaders, text } from '../../config/file/shapes/scalar.ts';
import { defineMember, object, type Shape } from '../../config/file/shapes/shape.ts';
import { httpUrl } from '../../config/rules.ts';
import { parseExactJson } from '../../platform/exact-json.ts';
import { FetchError, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { decodeUtf8, findExceededBound } from '../../platform/json.ts';
import {
  type AskGuard,
  createGuardLine,
  GuardFailure,
  type GuardTurn,
  toSentText,
} from './ask-guard.ts';
import {
  DEFAULT_TIMEOUT_MS,
  defineGuard,
  type GuardHost,
  timeout,
  version,
} from './define-guard.ts';
import { readAnswer, readInterceptorPayload, toInvocation } from './sep-2624.ts';

export interface HttpUse {
  readonly kind: 'http';
  readonly url: string;
  /** May contain secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Headers of each request to a guard. */
const OWN_HEADERS = new Set(['accept', 'content-type', 'traceparent']);

const members = {
  url: defineMember(
    'url',
    text(
      { ...httpUrl, allowed: `${httpUrl.allowed}, for example https://guard.example.com/judge` },
      { pattern: '^https?://', isSecret: true },
    ),
    'The address to which each message is sent.',
  ),
  headers: defineMember(
    'headers',
    requestHeaders(OWN_HEADERS),
    'Headers for each request to the guard.',
  ),
  timeout,
  version,
};

const httpShape: Shape<HttpUse> = object({
  allowed: 'an object with url',
  members: Object.values(members),
  schema: { required: ['url'] },
  build({ has, read, report }) {
    const url = read(members.url);
    read(members.version);
    if (!has(members.url)) report('"url" is missing: the address of the guard.');
    return url === undefined
      ? undefined
      : {
          kind: 'http',
          url,
          headers: read(members.headers) ?? {},
          timeoutMs: read(members.timeout) ?? DEFAULT_TIMEOUT_MS,
        };
  },
});

const naming = defineMember('http', httpShape, 'A service that is called over HTTP.');

export const httpGuard = defineGuard<HttpUse>({
  kind: 'http',
  naming,
  members: [],
  read: ({ read }) => read(naming),
  bind: (use) => ({
    describe: () => `http ${new URL(use.url).host}`,
    open: (host) => createHttpGuard(host, use),
  }),
});

function createHttpGuard({ clock, fetch }: GuardHost, config: HttpUse): AskGuard {
  const { url, timeoutMs } = config;
  const headers = {
    ...config.headers,
    'content-type': 'application/json',
    accept: 'application/json',
  };
  const runInTurn = createGuardLine();

  return async function askOverHttp(message, turn) {
    const { guard, traceparent } = message;
    const body = toSentText({
      version: VERSION,
      ...toInvocation(message, guard, timeoutMs, clock.now()),
    });
    const answer = await runInTurn(() => send(body, traceparent, turn.signal), turn);
    return readInterceptorPayload(readAnswer(answer), message);
  };

  async function send(body: string, traceparent: string | undefined, signal: GuardTurn['signal']) {
    const limit = new AbortController();
    let isLate = false;
    const leave = () => limit.abort(new Error('the caller no longer waits for the answer'));
    const stopClock = clock.after(timeoutMs, () => {
      isLate = true;
      limit.abort(new Error('it took too long'));
    });
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave);
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
      if (response.status < 200 || response.status > 299)
        throw new GuardFailure(`it answered ${response.status}`);
      return parseAnswer(response.body);
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      const reason = isLate
        ? `it did not answer within ${timeoutMs} ms`
        : 'it cannot be reached, or its answer could not be read';
      throw new GuardFailure(reason, { cause: error.cause });
    } finally {
      stopClock();
      signal?.removeEventListener('abort', leave);
    }
  }
}

/** The format of requests and answers. */
const VERSION = 'sep-2624';
/** A backstop for the gateway's own timeout, whose clock may stand still in tests. */
const GRACE_MS = 5_000;

function parseAnswer(body: Buffer): unknown {
  const answer = body.toString('utf8');
  const isBounded = findExceededBound(answer, ANSWER_BOUNDS) === undefined;
  if (!isBounded || decodeUtf8(body) === undefined) throw new GuardFailure(NO_JSON);
  try {
    return parseExactJson(answer);
  } catch {
    throw new GuardFailure(NO_JSON);
  }
}

const NO_JSON = 'its answer is not JSON';

const MAX_ANSWER_BYTES = 8_388_608;
const ANSWER_BOUNDS = { levels: 200, values: 500_000 };
