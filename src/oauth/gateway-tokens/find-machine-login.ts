// §8: a client that logs in as itself is counted by its own window once it is known to be itself, so that nobody who guesses at its
// address, or loops there, keeps it out.
import type { KnownLogin } from '../../endpoint/endpoint.ts';
import type { FindMachineLogin } from '../broker/broker-tokens.ts';
import type { ClientAuthentication } from '../client-authentication/authenticate-client.ts';
import { parseBody } from '../request/parameters.ts';

export const createFindMachineLogin = ({
  findBySecret,
  authenticate,
}: ClientAuthentication): FindMachineLogin =>
  function findMachineLogin(body, authorization) {
    try {
      const request = { body, parameters: parseBody(body), authorization };
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
