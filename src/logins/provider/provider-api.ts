// §4.7: form posts to the provider, so many at a time, by the one client that it knows; and its answers.

import type { ProviderClientConfig } from '../../config/groups/provider.ts';
import type { ProviderQuirks } from '../../config/provider-profiles.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Reply, ReplyError } from '../../http/endpoint/message.ts';
import {
  type Fetch,
  FetchError,
  type FetchedResponse,
  fetchWithLimits,
} from '../../platform/fetch-with-limits.ts';
import { parseObject } from '../../platform/json.ts';
import { toSentence } from '../../platform/text.ts';

export interface ProviderApi {
  /**
   * @throws GatewayError `upstream_failed` when there is no answer, `provider_busy`, at once, when
   * too many requests are in flight: a provider that stalls must not keep every one that comes.
   */
  post(request: ProviderRequest): Promise<ProviderResponse>;
}

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576 };
const MAX_IN_FLIGHT = 100;
/** Half the time after which a request is given up. */
const RETRY_AFTER_SECONDS = 5;

/** `errorCodes` are the provider's own words for errors, and the codes of RFC 6749 for the same. */
export function createProviderApi(
  fetch: Fetch,
  errorCodes: NonNullable<ProviderQuirks['errorCodes']> = {},
): ProviderApi {
  let inFlight = 0;

  return {
    async post(request) {
      if (inFlight >= MAX_IN_FLIGHT) {
        fail('provider_busy', { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
      }
      inFlight += 1;
      try {
        return readResponse(await postForm(fetch, request), request, errorCodes);
      } catch (cause) {
        if (cause instanceof FetchError) fail('upstream_failed', { cause });
        throw cause;
      } finally {
        inFlight -= 1;
      }
    },
  };
}

function postForm(fetch: Fetch, { url, form, authorization }: ProviderRequest) {
  // Nothing of the caller's request but its parameters: no cookies, no headers.
  const headers = {
    'Content-Type': 'application/x-www-form-urlencoded',
    Accept: 'application/json',
    ...(authorization !== undefined && { Authorization: authorization }),
  };
  const body = new URLSearchParams(form.map((pair): [string, string] => [...pair])).toString();
  return fetchWithLimits(fetch, url, { method: 'POST', headers, body }, LIMITS);
}

type ErrorCodes = Readonly<Record<string, string>>;

function readResponse(
  answer: FetchedResponse,
  request: ProviderRequest,
  errorCodes: ErrorCodes,
): ProviderResponse {
  const { status, headers, body } = answer;
  const contentType = headers.get('content-type');
  return {
    status,
    headers: contentType === null ? {} : { 'Content-Type': contentType },
    body,
    refusal:
      status >= 400 || isRefusal(body) ? readRefusal(answer, request, errorCodes) : undefined,
  };
}

/** GitHub and Slack refuse with 200. */
function isRefusal(body: Buffer): boolean {
  const answer = parseObject(body);
  return typeof answer?.error === 'string' && answer.access_token === undefined;
}

function readRefusal(
  { status, body }: FetchedResponse,
  { form, usesProviderClient }: ProviderRequest,
  errorCodes: ErrorCodes,
): ProviderRefusal {
  const { error, error_description: description } = parseObject(body) ?? {};
  const words = [error, description].filter((text) => typeof text === 'string').join(': ');
  const message = toSentence(
    `The provider answered ${status}${words === '' ? '' : ` ${redactSecrets(words, form)}`}`,
  );
  const code = typeof error === 'string' ? (errorCodes[error] ?? error) : undefined;
  const isProviderClientRefused = usesProviderClient && isClientError(code);
  return {
    code,
    message: isProviderClientRefused ? `${message} ${CHECK_PROVIDER_CLIENT}` : message,
    isProviderClientRefused,
  };
}

const SECRETS = new Set([
  'code',
  'code_verifier',
  'refresh_token',
  'token',
  'subject_token',
  'client_secret',
]);

/** Some providers repeat what they were sent, as it was or encoded. */
const redactSecrets = (text: string, form: ProviderRequest['form']): string =>
  form
    .filter(([name, value]) => SECRETS.has(name) && value !== '')
    .flatMap(([, value]) => [value, encodeURIComponent(value), formEncode(value)])
    .reduce((redacted, spelling) => redacted.replaceAll(spelling, '…'), text)
    .slice(0, 500);

// What the provider answers: as data that both modes read, and as the reply for a client.

export interface ProviderResponse {
  readonly status: number;
  /** Its content type: nothing else of what the provider's headers say is a client's matter. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Set from status 400 on, and where the answer is an error whatever its status says. */
  readonly refusal: ProviderRefusal | undefined;
}

/** RFC 6749 §5.2. */
export interface ProviderRefusal {
  /** The `error` of the answer, where it has one, as RFC 6749 §5.2 calls it. */
  readonly code: string | undefined;
  /** What the provider said, as a sentence for the log: no secret is in it. */
  readonly message: string;
  /** The gateway's client at the provider was refused, which only an operator can mend. */
  readonly isProviderClientRefused: boolean;
}

export const renderProviderResponse = ({
  status,
  headers,
  body,
  refusal,
}: ProviderResponse): Reply => ({
  status,
  headers: { ...headers, 'Cache-Control': 'no-store' },
  body,
  ...(refusal && { error: describeRefusal(refusal) }),
});

/**
 * The gateway's credentials are no client's matter: clients that get `invalid_client` or a 401 throw
 * away their registration and their tokens, which are good.
 *
 * @throws GatewayError `gateway_refused_by_provider`.
 */
export function failIfProviderClientRefused({ status, refusal }: ProviderResponse): void {
  if (status !== 401 && !refusal?.isProviderClientRefused) return;
  fail('gateway_refused_by_provider', { cause: refusal?.message });
}

/** How the log names a refusal. */
export const describeRefusal = ({
  isProviderClientRefused,
  message,
}: ProviderRefusal): ReplyError => ({
  key: isProviderClientRefused ? 'gateway_refused_by_provider' : 'refused_by_provider',
  message,
  logLevel: isProviderClientRefused ? 'warn' : undefined,
});

// §4.6, §4.7: the one client that the provider knows stands in for all clients of the gateway.

/** A form post to the provider. */
interface ProviderRequest {
  readonly url: string;
  readonly form: readonly (readonly [name: string, value: string])[];
  /** The whole Authorization header, or undefined for none. */
  readonly authorization: string | undefined;
  /** Sent as the client that the provider knows: the gateway. */
  readonly usesProviderClient: boolean;
}

/** @throws GatewayError `not_configured` when OAUTH_CLIENT_ID is not set. */
export const requireClientId = ({ id }: ProviderClientConfig): string =>
  id ?? fail('not_configured', { details: 'OAUTH_CLIENT_ID is not set on this gateway.' });

/** Members by which a client authenticates itself; those of another client are never passed on. */
const CREDENTIALS = new Set([
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
]);

/** RFC 6749 §2.3: the request with the credentials of the client that the provider knows. */
export function authenticateClient(
  client: ProviderClientConfig,
  { url, form }: Pick<ProviderRequest, 'url' | 'form'>,
): ProviderRequest {
  const { secret, authMethod } = client;
  const id = requireClientId(client);
  return {
    url,
    form: [
      ...form.filter(([name]) => !CREDENTIALS.has(name)),
      ['client_id', id],
      ...(secret !== undefined && authMethod === 'post'
        ? [['client_secret', secret] as const]
        : []),
    ],
    authorization:
      secret !== undefined && authMethod === 'basic'
        ? createBasicAuthorization(id, secret)
        : undefined,
    usesProviderClient: true,
  };
}

/** RFC 6749 §2.3.1: both halves form-encoded first. */
export const createBasicAuthorization = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`;

/** `application/x-www-form-urlencoded`, of one value. */
const formEncode = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);

/** RFC 6749 §4.1.2.1, §5.2: whether the error is about the client, not about its request. */
export const isClientError = (error: unknown): boolean =>
  error === 'invalid_client' || error === 'unauthorized_client';

/** For the client. */
export const MISCONFIGURED = "The gateway is misconfigured; this is not the user's fault.";

/** For the log. */
export const CHECK_PROVIDER_CLIENT =
  'Check OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH, and the client at the provider.';
