// Spec §4.7, decisions 6: one form post to the provider, its answer returned unchanged.
import { fail } from '../../../core/errors/gateway-error.ts';
import {
  type Fetch,
  type FetchedAnswer,
  FetchFailed,
  fetchLimited,
} from '../../../core/fetch-limited.ts';
import { parseObject } from '../../../core/json.ts';
import type { Reply } from '../../../core/message.ts';
import type { ProviderCalls } from './provider-calls.ts';
import { CHECK_OWN_CLIENT, formEncode, isClientRefused } from './provider-client.ts';

export interface UpstreamRequest {
  readonly url: string;
  readonly form: readonly (readonly [name: string, value: string])[];
  /** The whole Authorization header, or undefined for none. */
  readonly authorization: string | undefined;
  /** Sent with the service's own client id: a refusal of the client is the operator's to mend. */
  readonly asService: boolean;
}

/** Posts to the provider. @throws GatewayError `upstream_failed` or `provider_busy`. */
export type Upstream = (request: UpstreamRequest) => Promise<Reply>;

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576 };

export const createUpstream = (fetch: Fetch, calls: ProviderCalls): Upstream =>
  async function post(request) {
    const { url, form, authorization } = request;
    // Nothing of the caller's request but its parameters: no cookies, no headers.
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      ...(authorization !== undefined && { Authorization: authorization }),
    };
    const body = new URLSearchParams(form.map((pair): [string, string] => [...pair])).toString();
    const ask = () => fetchLimited(fetch, url, { method: 'POST', headers, body }, LIMITS);
    const answer = await calls
      .run(ask)
      .catch((cause: unknown) =>
        cause instanceof FetchFailed ? fail('upstream_failed', { cause }) : Promise.reject(cause),
      );
    return asReply(answer, request);
  };

function asReply(answer: FetchedAnswer, request: UpstreamRequest): Reply {
  const { status, headers, body } = answer;
  const contentType = headers.get('content-type');
  return {
    status,
    headers: {
      ...(contentType !== null && { 'Content-Type': contentType }),
      'Cache-Control': 'no-store',
    },
    body,
    ...(status >= 400 && { error: refusal(answer, request) }),
  };
}

/** What the log says of it; the caller gets the provider's own words. */
function refusal({ status, body }: FetchedAnswer, { form, asService }: UpstreamRequest) {
  const { error, error_description: description } = parseObject(body) ?? {};
  const words = [error, description].filter((word) => typeof word === 'string').join(': ');
  const said = asSentence(
    `The provider answered ${status}${words === '' ? '' : ` ${withoutSecrets(words, form)}`}`,
  );
  return asService && isClientRefused(error)
    ? { key: 'service_refused_by_provider', message: `${said} ${CHECK_OWN_CLIENT}` }
    : { key: 'refused_by_provider', message: said };
}

/** Many a provider ends its descriptions with a full stop, many a one does not. */
export const asSentence = (words: string): string => `${words.replace(/\.$/, '')}.`;

const SECRETS = new Set(['code', 'code_verifier', 'refresh_token', 'token', 'client_secret']);

/** Some providers repeat what they were sent, as it was or encoded. */
const withoutSecrets = (words: string, form: UpstreamRequest['form']): string =>
  form
    .filter(([name, value]) => SECRETS.has(name) && value !== '')
    .flatMap(([, value]) => [value, encodeURIComponent(value), formEncode(value)])
    .reduce((text, spelling) => text.replaceAll(spelling, '…'), words)
    .slice(0, 500);
