// One exchange with a gateway or a provider, as it is: redirects are answers, too.
import type { Clock } from '../../../platform/clock.ts';
import {
  type Fetch,
  type FetchInit,
  fetchWithLimits,
} from '../../../platform/fetch-with-limits.ts';
import { type JsonObject, parseObject } from '../../../platform/json.ts';

export interface Answer {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where the body is no JSON object. */
  readonly json: JsonObject | undefined;
  readonly milliseconds: number;
}

/** @throws FetchError */
export type Probe = (url: string, init?: FetchInit) => Promise<Answer>;

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576, acceptsRedirects: true };

export const createProbe =
  (fetch: Fetch, clock: Clock): Probe =>
  async (url, init = {}) => {
    const start = clock.monotonic();
    // Behind one address may stand several replicas: a new connection may reach another one.
    const headers = { ...init.headers, Connection: 'close' };
    const {
      status,
      headers: answered,
      body,
    } = await fetchWithLimits(fetch, url, { ...init, headers }, LIMITS);
    return {
      url,
      status,
      headers: answered,
      text: body.toString('utf8'),
      json: parseObject(body),
      milliseconds: Math.round(clock.monotonic() - start),
    };
  };
