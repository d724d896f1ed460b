// §8: a client that logs in as itself is counted by its own window once it is known to be itself, so that nobody who guesses at its
// address, or loops there, keeps it out.

import type { KnownLogin, LoginSearch } from '../../http/endpoint/endpoint.ts';
import type { RequestBody } from '../../http/endpoint/message.ts';
import { parseBody } from '../../http/endpoint/parameters.ts';
import type { ClientAuthentication } from '../client-authentication/authenticate-client.ts';
import type { AssertingClient } from '../id-jag/jwt-bearer.ts';
import { JWT_BEARER } from '../request/login-facts.ts';

export type FindMachineLogin = (
  body: RequestBody,
  authorization: string | undefined,
) => LoginSearch | undefined;

/** `ofAssertions` is asked where the client brings an assertion about a user: other clients may do that, too. */
export const createFindMachineLogin = (
  authentication: ClientAuthentication,
  ofAssertions: ClientAuthentication<AssertingClient> | undefined,
): FindMachineLogin =>
  function findMachineLogin(body, authorization) {
    try {
      const request = { body, parameters: parseBody(body), authorization };
      const isAssertion = request.parameters.get('grant_type') === JWT_BEARER;
      const { findBySecret, authenticate } = (isAssertion && ofAssertions) || authentication;
      // Cheap enough for each request. A signature is not: of those few are looked at while the address is refused.
      const known = findBySecret(request);
      if (known !== undefined) {
        const login = toLogin(known.id);
        return { knownId: login.id, find: async () => login };
      }
      return {
        knownId: undefined,
        find: async () => toLogin((await authenticate(request)).client.id),
      };
    } catch {
      // What is wrong with the request is said once it was counted.
      return undefined;
    }
  };

const toLogin = (clientId: string): KnownLogin => ({
  id: `client:${clientId}`,
  isAnswered: false,
  isProven: true,
});
