// Spec §4.7, decisions 6: one form post to the provider, its answer returned unchanged.
import { fail } from '../../core/errors/gateway-error.ts';
import {
  type Fetch,
  type FetchedAnswer,
  FetchFailed,
  fetchLimited,
} from '../../core/fetch-limited.ts';
import type { Reply } from '../../core/message.ts';

export interface UpstreamRequest {
  readonly url: string;
  readonly form: readonly (readonly [name: string, value: string])[];
  /** The whole Authorization header, or undefined for none. */
  readonly authorization: string | undefined;
}

/** Posts to the provider. @throws GatewayError `upstream_failed`. */
export type Upstream = (request: UpstreamRequest) => Promise<Reply>;

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576 };

export const createUpstream = (fetch: Fetch): Upstream =>
  async function post({ url, form, authorization }) {
    // Nothing of the caller's request but its parameters: no cookies, no headers.
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      ...(authorization !== undefined && { Authorization: authorization }),
    };
    const body = new URLSearchParams(form.map((pair): [string, string] => [...pair])).toString();
    const answer = await fetchLimited(fetch, url, { method: 'POST', headers, body }, LIMITS).catch(
      (cause: unknown) =>
        cause instanceof FetchFailed ? fail('upstream_failed', { cause }) : Promise.reject(cause),
    );
    return asReply(answer);
  };

function asReply({ status, headers, body }: FetchedAnswer): Reply {
  const contentType = headers.get('content-type');
  return {
    status,
    headers: {
      ...(contentType !== null && { 'Content-Type': contentType }),
      'Cache-Control': 'no-store',
    },
    body,
  };
}
