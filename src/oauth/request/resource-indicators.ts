// RFC 8707 §2: tokens for this service and no other may be asked for by way of it.

import type { ServerUrls } from '../../config/server-urls.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { RequestParameters } from './parameters.ts';

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
