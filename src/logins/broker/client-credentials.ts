// RFC 6749 §4.4: the grant type `client_credentials`: a client in the configuration file gets a token for itself. There is no
// refresh token: the client authenticates again.

import { DEFAULT_SCOPES, parseScope } from '../../config/rules.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { LoginSearch } from '../../http/endpoint/endpoint.ts';
import type { RequestBody } from '../../http/endpoint/message.ts';
import { parseBody, type RequestParameters } from '../../http/endpoint/parameters.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { buildMachineGrantKey } from '../../store/keys.ts';
import { type MachineClient, toMachineUser } from '../auth/machine-clients.ts';
import type {
  ClientAuthentication,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { createGrantId, type Grant, isGrantId, nameUser } from '../grants/grant.ts';
import type { AssertingClient } from '../id-jag/jwt-bearer.ts';
import { JWT_BEARER } from '../request/login-facts.ts';
import type { Broker } from './open-broker.ts';
import { isFresh } from './refresh-token.ts';
import { readMachineResources } from './resources.ts';
import type { GrantType, TokenIssue } from './token.ts';

export function createClientCredentialsGrant(
  { runtime, ownTokens: { grants }, ends: { logouts }, machineClients }: Broker,
  { authenticate }: ClientAuthentication,
  { issueGrant, answer }: TokenIssue,
): GrantType {
  const { baseUrl, store, clock } = runtime;
  const issuing = createSingleFlight<string, Grant>();

  return async function giveToken(request) {
    const { parameters, facts } = request;
    if (machineClients.list().length === 0) fail('unsupported_grant_type');
    // RFC 6749 §4.4.2: the client must authenticate.
    const { client, useUp } = await authenticate(request);
    const { id, mark } = client;
    const user = toMachineUser(id, baseUrl);
    Object.assign(facts, { client: id, ...nameUser(user) });
    // RFC 6749 §3.3, RFC 8707 §2.
    const scopes = readScopes(parameters, client);
    const resources = readMachineResources(parameters, runtime, client);
    // The mark is a part of it: a client that was changed gets no token from before.
    const asked = JSON.stringify([id, mark, [...scopes].sort(), [...resources].sort()]);
    const hash = hashSha256(asked);
    return async function issueAndAnswer() {
      await useUp();
      // Single flight: concurrent requests of the client share one grant.
      const grant = await issuing.run(hash, findOrIssue);
      return answer(grant, undefined, false);
    };

    /** A client may ask before each call: while a token has most of its lifetime left, it gets the same one. */
    async function findOrIssue(): Promise<Grant> {
      // A logout from here on ends this grant, too.
      const logoutMark = await logouts.getMark();
      const key = buildMachineGrantKey(hash);
      const known = await store.get(key);
      const found = known !== undefined && isGrantId(known) ? await grants.read(known) : undefined;
      if (found && isFresh(found.grant.issued, clock.now())) return found.grant;
      const granted = {
        id: createGrantId(),
        user,
        claims: { iss: user.issuer, sub: user.sub, client_id: id },
        provider: {},
        client: { id },
        clientMark: mark,
        scopes,
        resources,
      };
      const grant = await issueGrant(granted, logoutMark, ENDED_MEANWHILE);
      const seconds = Math.ceil((grant.issued.expiresAt - clock.now()) / 1000);
      await store.set(key, grant.id, Math.max(1, seconds));
      return grant;
    }
  };
}

/**
 * Official clients request all `scopes_supported`, which concern people: a client without these scopes is not refused for that.
 */
function readScopes(parameters: RequestParameters, { scopes }: MachineClient) {
  const asked = parseScope(parameters.get('scope')).filter(
    (one) => scopes.includes(one) || !ABOUT_USERS.has(one),
  );
  if (asked.some((one) => !scopes.includes(one)))
    return fail('invalid_scope', {
      details: `The client may not have this scope. The configuration file gives it ${scopes.length === 0 ? 'no scopes' : scopes.join(' ')}.`,
    });
  return asked.length === 0 ? scopes : scopes.filter((one) => asked.includes(one));
}

const ABOUT_USERS: ReadonlySet<string> = new Set(DEFAULT_SCOPES);

const ENDED_MEANWHILE = 'The logins of this client were ended meanwhile. Try again.';

// §8: an authenticated client is counted in a separate window, so that an attacker at its address, who guesses secrets or loops,
// cannot lock it out.

export type FindMachineLogin = ReturnType<typeof createFindMachineLogin>;

/** `ofAssertions` authenticates clients that bring an assertion about a user: more clients may do that. */
export const createFindMachineLogin = (
  authentication: ClientAuthentication,
  ofAssertions: ClientAuthentication<AssertingClient> | undefined,
) =>
  function findMachineLogin(
    body: RequestBody,
    authorization: string | undefined,
  ): LoginSearch | undefined {
    try {
      const request = { body, parameters: parseBody(body), authorization };
      const isAssertion = request.parameters.get('grant_type') === JWT_BEARER;
      const { findBySecret, authenticate } = (isAssertion && ofAssertions) || authentication;
      // Checking a secret is cheap enough for each request. A signature is not: few are checked while the address is refused.
      const known = findBySecret(request);
      return {
        knownId: known && toLoginId(known),
        async find() {
          const { client } = await authenticate(request);
          return { id: toLoginId(client), isCheap: false, isProven: true };
        },
      };
    } catch {
      // An error in the request is reported once the request has been counted.
      return undefined;
    }
  };

const toLoginId = ({ id }: ProvenClient) => `client:${id}`;
