// OpenID Connect Core §5.3: the userinfo endpoint, asked with the provider's access token.

import type { ProviderQuirks } from '../../config/provider-profiles.ts';
import { catalogue } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { ProviderMetadata } from '../../http/oauth-client/provider-metadata.ts';
import {
  type Fetch,
  type FetchedResponse,
  fetchWithLimits,
} from '../../platform/fetch-with-limits.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';

export type UserinfoAnswer =
  | { readonly kind: 'claims'; readonly claims: JsonObject }
  /** The provider has no such endpoint. */
  | { readonly kind: 'none' }
  | UserinfoFailure;

export interface UserinfoFailure {
  readonly kind: 'failed';
  /** A sentence. */
  readonly problem: string;
  /** Whether it may pass by itself. */
  readonly isTemporary: boolean;
  /** Whether it is the access token that is not accepted (RFC 6750 §3.1). */
  readonly isRefused: boolean;
  readonly cause?: unknown;
}

/** `sub` is undefined where nobody has said yet whose it is. @throws GatewayError `unusable_identity` for an answer about somebody else. */
export type AskUserinfo = (accessToken: string, sub: string | undefined) => Promise<UserinfoAnswer>;

export interface AskUserinfoDeps {
  readonly metadata: ProviderMetadata;
  /** Words of the provider's own for errors. */
  readonly errorCodes?: ProviderQuirks['errorCodes'];
  readonly fetch: Fetch;
}

const LIMITS = { timeoutMs: 5000, maxBytes: 262_144 };

export function createAskUserinfo({
  metadata,
  errorCodes = {},
  fetch,
}: AskUserinfoDeps): AskUserinfo {
  async function fetchUserinfo(accessToken: string): Promise<FetchedResponse | undefined> {
    const { userinfo_endpoint: url } = await metadata.get();
    const headers = { Authorization: `Bearer ${accessToken}`, Accept: 'application/json' };
    return url === undefined ? undefined : fetchWithLimits(fetch, url, { headers }, LIMITS);
  }

  return async function askUserinfo(accessToken, sub) {
    const response = await fetchUserinfo(accessToken).catch(
      (cause: unknown): UserinfoFailure => ({
        kind: 'failed',
        problem: "The provider's userinfo endpoint could not be asked.",
        isTemporary: true,
        isRefused: false,
        cause,
      }),
    );
    if (response === undefined) return { kind: 'none' };
    return 'kind' in response ? response : readAnswer(response, sub, errorCodes);
  };
}

function readAnswer(
  { status, headers, body }: FetchedResponse,
  sub: string | undefined,
  errorCodes: Readonly<Record<string, string>>,
): UserinfoAnswer {
  if (status !== 200) {
    const problem = `The provider's userinfo endpoint answered ${status}.`;
    const isTemporary = isTemporaryStatus(status);
    return { kind: 'failed', problem, isTemporary, isRefused: status === 401 };
  }
  const type = headers.get('content-type') ?? '';
  const claims = /^application\/json\s*(;|$)/i.test(type) ? parseObject(body) : undefined;
  if (claims === undefined) {
    const advice = /^application\/jwt\b/i.test(type)
      ? ' Switch signed userinfo off for this client at the provider.'
      : '';
    const problem = `The provider's userinfo endpoint answered no JSON object (its content type is ${quote(type)}).${advice}`;
    return { kind: 'failed', problem, isTemporary: false, isRefused: false };
  }
  // Slack refuses with 200.
  if (typeof claims.error === 'string' && claims.sub === undefined) {
    const code = errorCodes[claims.error] ?? claims.error;
    return {
      kind: 'failed',
      problem: `The provider's userinfo endpoint answered 200 with the error ${quote(claims.error)}.`,
      isTemporary: TEMPORARY.has(code),
      isRefused: REFUSALS.has(code),
    };
  }
  if (sub !== undefined) requireSubject(claims, sub);
  return { kind: 'claims', claims };
}

const TEMPORARY: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error']);
const REFUSALS: ReadonlySet<string> = new Set(['invalid_token', 'invalid_grant']);

const isTemporaryStatus = (status: number): boolean =>
  status >= 500 || status === 408 || status === 429;

/** OpenID Connect Core §5.3.2, §5.3.4: else the answer must not be used, and the access token may be somebody else's. */
function requireSubject({ sub: found }: JsonObject, sub: string): void {
  if (found === sub) return;
  fail('unusable_identity', {
    details: `${catalogue.unusable_identity.details} Its userinfo endpoint speaks of another user than its ID token: the sub is ${quote(found)} and must be ${quote(sub)}.`,
    facts: { member: 'sub', found: quote(found), expected: sub },
  });
}
