// Spec §4.6, §4.7, decisions 6: the one client that the provider knows stands in for all dynamic
// ones.
import { fail } from '../../../core/errors/gateway-error.ts';

export interface ProviderClientSettings {
  readonly oauthClientId: string | undefined;
  readonly oauthClientSecret: string | undefined;
  readonly oauthClientAuth: 'post' | 'basic';
}

/** @throws GatewayError `not_configured` without a static provider client. */
export const providerClientId = ({ oauthClientId }: ProviderClientSettings): string =>
  oauthClientId ??
  fail('not_configured', { details: 'OAUTH_CLIENT_ID is not set on this service.' });

/** Members by which a client authenticates itself; never passed on for a dynamic client. */
const CREDENTIALS = new Set([
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
]);

type Pairs = readonly (readonly [string, string])[];

/** The form and header that the provider gets in the name of a dynamic client. */
export function asService(settings: ProviderClientSettings, pairs: Pairs) {
  const { oauthClientSecret: secret, oauthClientAuth: method } = settings;
  const id = providerClientId(settings);
  const own = pairs.filter(([name]) => !CREDENTIALS.has(name));
  const form: Pairs = [
    ...own,
    ['client_id', id],
    ...(secret !== undefined && method === 'post' ? [['client_secret', secret] as const] : []),
  ];
  const authorization = secret !== undefined && method === 'basic' ? basic(id, secret) : undefined;
  return { form, authorization, asService: true };
}

/** RFC 6749 §2.3.1: both halves form-encoded first. */
const basic = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`;

/** `application/x-www-form-urlencoded`, of one value. */
export const formEncode = (text: string): string =>
  new URLSearchParams([['', text]]).toString().slice(1);

/** RFC 6749 §4.1.2.1, §5.2: it is the client that the provider does not want. */
export const isClientRefused = (error: unknown): boolean =>
  error === 'invalid_client' || error === 'unauthorized_client';

/** For the log. */
export const CHECK_OWN_CLIENT =
  'Check OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH, and the client at the provider.';
