// RFC 7523 §2.1, draft-ietf-oauth-identity-assertion-authz-grant §4.4: a client brings what its user's identity provider says, and gets a
// token for that user. There is no refresh token: the provider is asked again, so that it goes on deciding.

import { parseScope } from '../../config/scope.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { PendingReply, Reply } from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { truncateForLog } from '../../platform/log.ts';
import { buildUserAssertionKey } from '../../store/keys.ts';
import { computeNotedSeconds } from '../auth/claims.ts';
import type { KeyHint } from '../auth/key-set.ts';
import type { MachineClient } from '../auth/machine-clients.ts';
import type { TokenIssue } from '../broker/issue-grant.ts';
import type { Broker } from '../broker/open-broker.ts';
import {
  coversResource,
  getDefaultResources,
  readAskedResources,
  selectOwnResources,
  toUrl,
} from '../broker/resources.ts';
import type {
  AuthenticationRequest,
  ClientAuthentication,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { ClientDocumentRefused } from '../client-id-metadata/client-document.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import { createGrantId, type Grant, issueFirstPair, nameUser } from '../grants/grant.ts';
import { MAX_SCOPES, MAX_TOKEN_RESOURCES } from '../grants/token-codec.ts';
import { readGroups } from '../identity/groups.ts';
import { checkClaimSize } from '../identity/identity.ts';
import type { OwnResources } from '../request/authorization-request.ts';
import { addFacts } from '../request/login-facts.ts';
import { type Assertion, failMember, type VerifyAssertion } from './assertion.ts';

export type GiveByAssertion = (request: AuthenticationRequest) => Promise<PendingReply>;

export function createGiveByAssertion(
  { runtime, ownTokens: { grants }, ends: { logouts }, findLoginRefusal }: Broker,
  authentication: Pick<ClientAuthentication<AssertingClient>, 'authenticate'>,
  verifyAssertion: VerifyAssertion,
  { issueGrant, answer }: TokenIssue,
): GiveByAssertion {
  const { oauth, store, clock } = runtime;
  const { accessSeconds, clockToleranceSeconds } = oauth.tokens;

  return async function giveByAssertion(request) {
    const { client, useUp } = await authentication.authenticate(request);
    return addFacts({ client: client.id }, async () => {
      const text = request.parameters.require('assertion');
      // An end of the user's logins from here on ends this, too.
      const logoutMark = await logouts.getMark();
      const assertion = await verifyAssertion(text, client.id);
      return addFacts(nameUser(assertion.user), async () => {
        const grant = buildGrant(request.parameters, client, assertion);
        checkMayLogIn(grant);
        return async function issueAndAnswer() {
          await useUp();
          await spend(assertion);
          return issue(grant, logoutMark);
        };
      });
    });
  };

  function buildGrant(
    parameters: RequestParameters,
    client: AssertingClient,
    assertion: Assertion,
  ): Grant {
    const granted = {
      scopes: selectScopes(parameters, client, assertion),
      resources: readGrantedResources(parameters, runtime, { assertion, client }),
    };
    const now = clock.now();
    return {
      id: createGrantId(),
      user: assertion.user,
      claims: selectClaims(assertion.claims, oauth.identity.groupsClaim),
      provider: {},
      client: { id: client.id, name: client.name },
      assertion: { clientMark: client.mark },
      ...granted,
      sid: assertion.sid,
      createdAt: now,
      renewedAt: now,
      issued: issueFirstPair(granted, now, accessSeconds),
    };
  }

  function checkMayLogIn({ user, claims }: Grant): void {
    const refusal = findLoginRefusal({ user, claims });
    if (refusal !== undefined)
      fail('asserted_user_refused', { facts: { problem: refusal.forLog } });
  }

  /**
   * RFC 7523 §3: good once, on all replicas together. All else was judged before, so that a request that is refused costs nothing;
   * if the store fails after it, the client gets another assertion.
   */
  async function spend({ user, jti, exp }: Assertion): Promise<void> {
    const key = buildUserAssertionKey(hashSha256(JSON.stringify([user.issuer, jti])));
    const seconds = computeNotedSeconds(exp + clockToleranceSeconds, clock.now());
    if (await store.compareAndSet(key, undefined, '1', seconds)) return;
    failMember('jti', jti, 'one that was not used');
  }

  async function issue(grant: Grant, logoutMark: number): Promise<Reply> {
    const issued = await issueGrant(grants.capExpiry(grant), logoutMark);
    if (issued === undefined) return fail('invalid_grant', { details: ENDED_MEANWHILE });
    return answer(issued, issued.client.name, false);
  }
}

/** The scopes that the issuer, the configuration file and the client all name: the answer says which they are. */
function selectScopes(
  parameters: RequestParameters,
  { scopes: ofClient }: Pick<AssertingClient, 'scopes'>,
  { scopes }: Pick<Assertion, 'scopes'>,
): readonly string[] {
  const asked = parameters.get('scope');
  const named = asked === undefined ? scopes : parseScope(asked);
  const isGranted = (one: string) => named.includes(one) && (ofClient?.includes(one) ?? true);
  return [...new Set(scopes.filter(isGranted))].slice(0, MAX_SCOPES);
}

const ENDED_MEANWHILE = 'The logins of this user were ended meanwhile. Try again.';

// §13.2: what is kept of an assertion about the user: the same as of an ID token.

/** `groups` is that of OIDC_GROUPS_CLAIM. @throws GatewayError `unusable_assertion` where there are too many. */
function selectClaims(asserted: JsonObject, groupsClaim: string): JsonObject {
  // If claims are to be had elsewhere, there may be an access token beside the address.
  const { _claim_sources: _, groups: __, ...rest } = asserted;
  const groups = readGroups(asserted, groupsClaim);
  const claims = groups === undefined ? rest : { ...rest, groups };
  try {
    checkClaimSize(claims);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    failMember('claims', thrown.message, 'claims of 16 KiB, and of 32 levels, at most');
  }
  return claims;
}

// RFC 8707: what a token is for: what its issuer, the configuration file and the client all name.

interface Granting {
  readonly assertion: Pick<Assertion, 'resources'>;
  readonly client: Pick<AssertingClient, 'id' | 'resources'>;
}

/** @throws GatewayError `unusable_assertion` for one that is for something else; `invalid_target`. */
function readGrantedResources(
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

// The clients that may bring assertions: those of the configuration file, and those whose metadata document has keys.

/** Members that may be undefined are said for clients of the configuration file alone. */
export interface AssertingClient extends ProvenClient {
  /** The name that the client gives itself. */
  readonly name?: string | undefined;
  readonly scopes: MachineClient['scopes'] | undefined;
  readonly resources: MachineClient['resources'];
  readonly mark: MachineClient['mark'] | undefined;
}

/** @throws GatewayError `unauthenticated_machine`; `client_keys_unavailable` where its host cannot be reached. */
export const createFindByDocument = (
  documents: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>,
) =>
  async function findByDocument(id: string, hint: KeyHint): Promise<AssertingClient | undefined> {
    if (!documents.isClientDocumentId(id)) return undefined;
    try {
      const { document, keys } = await documents.findKeyed(id, hint);
      return {
        id,
        name: document.client_name,
        credentials: { kind: 'keys', keys },
        scopes: undefined,
        resources: undefined,
        mark: undefined,
      };
    } catch (error) {
      if (!(error instanceof ClientDocumentRefused)) throw error;
      const client = truncateForLog(id);
      if (error.isUnreachable)
        fail('client_keys_unavailable', {
          headers: { 'Retry-After': '5' },
          cause: error,
          facts: { client },
        });
      return fail('unauthenticated_machine', {
        facts: { client, found: error.message, expected: 'a document with its keys' },
      });
    }
  };
