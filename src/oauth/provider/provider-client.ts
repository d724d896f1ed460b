// §4.6, §4.7: the one client that the provider knows stands in for all clients of the gateway.
import type { ProviderClientConfig } from '../../config/groups/provider-client.ts';
import { fail } from '../../errors/gateway-error.ts';

/** A form post to the provider. */
export interface ProviderRequest {
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
const createBasicAuthorization = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`;

/** `application/x-www-form-urlencoded`, of one value. */
export const formEncode = (text: string): string =>
  new URLSearchParams([['', text]]).toString().slice(1);

/** RFC 6749 §4.1.2.1, §5.2: whether the error is about the client, not about its request. */
export const isClientError = (error: unknown): boolean =>
  error === 'invalid_client' || error === 'unauthorized_client';

/** For the log. */
export const CHECK_PROVIDER_CLIENT =
  'Check OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH, and the client at the provider.';
