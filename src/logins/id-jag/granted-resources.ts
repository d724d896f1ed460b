// RFC 8707: what a token is for that an assertion is exchanged for: what its issuer, the configuration file and the client all name.

import { fail } from '../../errors/gateway-error.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import {
  coversResource,
  getDefaultResources,
  readAskedResources,
  selectOwnResources,
  toUrl,
} from '../broker/resources.ts';
import { MAX_TOKEN_RESOURCES } from '../grants/token-codec.ts';
import type { OwnResources } from '../request/parameters.ts';
import type { AssertingClient } from './asserting-client.ts';
import { type Assertion, failMember } from './assertion.ts';

export interface Granting {
  readonly assertion: Pick<Assertion, 'resources'>;
  readonly client: Pick<AssertingClient, 'id' | 'resources'>;
}

/** @throws GatewayError `unusable_assertion` for one that is for something else; `invalid_target`. */
export function readGrantedResources(
  parameters: RequestParameters,
  own: OwnResources,
  { assertion, client }: Granting,
): readonly string[] {
  const ofAssertion = readAsserted(assertion, own) ?? getDefaultResources(own);
  const ofClient = listOfClient(client, own) ?? getDefaultResources(own);
  const granted = intersect(ofAssertion, ofClient, own);
  const asked = readAskedResources(parameters, own, client.id) ?? granted;
  const areGranted = asked.every((one) => coversResource(granted, one, own));
  if (asked.length > 0 && asked.length <= MAX_TOKEN_RESOURCES && areGranted) return asked;
  return fail('invalid_target', {
    details: 'The assertion is not for this resource, or the client may not have a token for it.',
  });
}

function readAsserted(
  { resources }: Granting['assertion'],
  own: OwnResources,
): readonly string[] | undefined {
  const foreign = resources?.find((one) => selectOwnResources([one], own).length === 0);
  if (foreign !== undefined)
    failMember('resource', foreign, `${own.baseUrl}/mcp, ${own.baseUrl} or a server of it`);
  return resources && selectOwnResources(resources, own);
}

/** Without those of operators: a client calls these as itself, never for somebody. */
const listOfClient = (
  { resources }: Granting['client'],
  own: OwnResources,
): readonly string[] | undefined =>
  resources &&
  selectOwnResources(
    resources.map((one) => toUrl(one, own)),
    own,
  );

const intersect = (
  some: readonly string[],
  others: readonly string[],
  own: OwnResources,
): readonly string[] => [
  ...new Set([
    ...some.filter((one) => coversResource(others, one, own)),
    ...others.filter((one) => coversResource(some, one, own)),
  ]),
];
