// RFC 6749 §3.3, RFC 8707: the scopes and resources that a client asks for. One of the gateway's own tokens is valid for the
// whole gateway, one server behind it, or the operators' page.

import { parseScope } from '../../config/rules.ts';
import type { ServerUrls } from '../../config/server-urls.ts';
import { fail } from '../../errors/gateway-error.ts';
import { OPERATORS_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import type { MachineClient } from '../auth/machine-clients.ts';
import { MAX_TOKEN_RESOURCES } from '../grants/token-codec.ts';

export interface OwnResources {
  readonly baseUrl: string;
  readonly serverUrls: ServerUrls;
}

/** The scopes and resources of one token request; undefined means everything that was granted. */
export interface AskedPair {
  readonly scopes: readonly string[] | undefined;
  readonly resources: readonly string[] | undefined;
}

/** @throws GatewayError `invalid_target` for a resource that is not ours. */
export function readAskedPair(
  parameters: RequestParameters,
  clientId: string,
  own: OwnResources,
): AskedPair {
  const scopes = parseScope(parameters.get('scope'));
  return {
    scopes: scopes.length === 0 ? undefined : scopes,
    resources: readAskedResources(parameters, own, clientId),
  };
}

/**
 * The resources that the client names, each in canonical form; undefined if it names none.
 *
 * @throws GatewayError `invalid_target` for a resource that is not ours.
 */
export function readAskedResources(
  parameters: RequestParameters,
  own: OwnResources,
  clientId: string,
): readonly string[] | undefined {
  // Operators' tokens are used by a page that calls nothing else, whatever it names.
  if (clientId === OPERATORS_CLIENT_ID) return [`${own.baseUrl}/admin`];
  const named = readResourceIndicators(parameters, own);
  const resources = new Set(named.map((one) => toCanonical(one, own)));
  if (resources.size > MAX_TOKEN_RESOURCES)
    fail('invalid_target', {
      details: `A token can be for ${MAX_TOKEN_RESOURCES} resources at most. ${own.baseUrl}/mcp is all of them.`,
    });
  return resources.size === 0 ? undefined : [...resources];
}

/** The resources that the client names, as sent. All are ours. @throws GatewayError `invalid_target`. */
export function readResourceIndicators(
  parameters: RequestParameters,
  { baseUrl, serverUrls }: OwnResources,
): readonly string[] {
  const resources: string[] = [];
  for (const [name, resource] of parameters.pairs) {
    if (name !== 'resource') continue;
    const isAccepted =
      [baseUrl, `${baseUrl}/`, `${baseUrl}/mcp`, `${baseUrl}/mcp/`].includes(resource) ||
      serverUrls.isResource(resource);
    if (!isAccepted)
      fail('invalid_target', {
        details: `The resource must be ${baseUrl}/mcp, ${baseUrl}, or the address of a server or view below ${baseUrl}/mcp.`,
      });
    resources.push(resource);
  }
  return resources;
}

/**
 * The resources that a machine client requests, among those it may have; all of those if it names none.
 *
 * @throws GatewayError `invalid_target`.
 */
export function readMachineResources(
  parameters: RequestParameters,
  own: OwnResources,
  { resources }: MachineClient,
): readonly string[] {
  const admin = `${own.baseUrl}/admin`;
  const named = parameters.pairs.filter(([name]) => name === 'resource');
  const asked = [...new Set(named.map(([, one]) => toCanonical(one, own)))];
  const granted =
    resources?.map((one) => toCanonical(toUrl(one, own), own)) ?? getDefaultResources(own);
  if (asked.length === 0) return granted;
  const mayHave = resources === undefined ? [...granted, admin] : granted;
  const isRight = asked.every(
    (one) =>
      (one === admin || selectOwnResources([one], own).length > 0) &&
      coversResource(mayHave, one, own),
  );
  if (!isRight || asked.length > MAX_TOKEN_RESOURCES)
    fail('invalid_target', {
      details: `The client may not have a token for this resource. It may have one for ${mayHave.join(', ')}, or for a server there is under /mcp of these.`,
    });
  return asked;
}

/** The configuration file may name paths of the gateway. */
export const toUrl = (resource: string, { baseUrl }: OwnResources): string =>
  resource.startsWith('/') ? baseUrl + resource : resource;

/** Our resources in a list that may also name others. */
export const selectOwnResources = (
  resources: readonly string[],
  { baseUrl, serverUrls }: OwnResources,
): readonly string[] => {
  const isOwn = (one: string) =>
    [baseUrl, `${baseUrl}/mcp`].includes(one) || serverUrls.isResource(one);
  return [...new Set(resources.map((one) => toCanonical(one, { baseUrl })).filter(isOwn))];
};

export const getDefaultResources = ({ baseUrl }: OwnResources) => [`${baseUrl}/mcp`];

/** @throws GatewayError always. */
export function failTarget(): never {
  return fail('invalid_target', { details: 'The login was not made for this resource.' });
}

/** True if a grant for these resources covers another one: access to all servers includes each server. */
export const coversResource = (
  granted: readonly string[],
  resource: string,
  { baseUrl }: Pick<OwnResources, 'baseUrl'>,
): boolean =>
  granted.includes(resource) ||
  (granted.includes(`${baseUrl}/mcp`) && resource.startsWith(`${baseUrl}/mcp/`));

function toCanonical(resource: string, { baseUrl }: Pick<OwnResources, 'baseUrl'>) {
  const stripped = resource.replace(/\/$/, '');
  return stripped === baseUrl ? `${baseUrl}/mcp` : stripped;
}
