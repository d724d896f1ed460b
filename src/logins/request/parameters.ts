// §4.7: what tokens a client asks for, whether two requests ask for the same, and for which resources (RFC 8707).

import type { ServerUrls } from '../../config/server-urls.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';

/** What a client asked for. Whoever asks for anything else gets an answer of its own. */
export interface AskedTokens {
  readonly clientId: string;
  /** As they were sent, in the order of their names; without what only says who asks, and by what right. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/** Of a code or a refresh token, and of the client: the same tokens are asked for with either. */
const RIGHTS: ReadonlySet<string> = new Set([
  'grant_type',
  'code',
  'code_verifier',
  'redirect_uri',
  'refresh_token',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
]);

export const readAskedTokens = ({ pairs }: RequestParameters, clientId: string): AskedTokens => ({
  clientId,
  parameters: pairs
    .filter(([name]) => !RIGHTS.has(name))
    .sort(([name, value], [otherName, other]) =>
      name === otherName ? compare(value, other) : compare(name, otherName),
    ),
});

const compare = (one: string, other: string): number => Number(one > other) - Number(one < other);

export const isSameRequest = (one: AskedTokens, other: AskedTokens): boolean =>
  one.clientId === other.clientId &&
  JSON.stringify(one.parameters) === JSON.stringify(other.parameters);

// RFC 8707 §2: tokens for this service and no other may be asked for by way of it.

/** What is ours. */
export interface OwnResources {
  readonly baseUrl: string;
  readonly serverUrls: ServerUrls;
}

/** What the client names, all of it this service. @throws GatewayError `invalid_target`. */
export function readResourceIndicators(
  { pairs }: RequestParameters,
  { baseUrl, serverUrls }: OwnResources,
): readonly string[] {
  const resources = pairs.filter(([name]) => name === 'resource').map(([, value]) => value);
  const accepted = [baseUrl, `${baseUrl}/`, `${baseUrl}/mcp`, `${baseUrl}/mcp/`];
  const isOwn = (resource: string) =>
    accepted.includes(resource) || serverUrls.isResource(resource);
  if (!resources.every(isOwn)) {
    fail('invalid_target', { details: `The resource must be ${baseUrl}/mcp or ${baseUrl}.` });
  }
  return resources;
}
