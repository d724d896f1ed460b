// RFC 7523 §2.1, draft-ietf-oauth-identity-assertion-authz-grant §4.4: the grant type `jwt-bearer`: a client brings an assertion
// about its user, and gets a token for that user. There is no refresh token: the client has to go to the provider again,
// which stays in control.

import { parseScope } from '../../config/rules.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { truncateForLog } from '../../platform/log.ts';
import { buildUserAssertionKey } from '../../store/keys.ts';
import { claimOnce } from '../../store/records.ts';
import type { KeyHint } from '../auth/key-set.ts';
import type { MachineClient } from '../auth/machine-clients.ts';
import { computeNotedSeconds } from '../auth/token-verifier.ts';
import type { Broker } from '../broker/open-broker.ts';
import {
  coversResource,
  getDefaultResources,
  type OwnResources,
  readAskedResources,
  selectOwnResources,
  toUrl,
} from '../broker/resources.ts';
import type { GrantType, TokenIssue } from '../broker/token.ts';
import type {
  ClientAuthentication,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { ClientDocumentRefused } from '../client-id-metadata/client-document.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import { createGrantId, nameUser } from '../grants/grant.ts';
import { MAX_SCOPES, MAX_TOKEN_RESOURCES } from '../grants/token-codec.ts';
import { checkClaimSize, readGroups } from '../identity/identity.ts';
import { type Assertion, failMember, type VerifyAssertion } from './assertion.ts';

export function createJwtBearerGrant(
  { runtime, ends: { logouts }, providerLogins }: Broker,
  { authenticate }: ClientAuthentication<AssertingClient>,
  verifyAssertion: VerifyAssertion,
  { issueGrant, answer }: TokenIssue,
): GrantType {
  const { oauth, store, clock } = runtime;

  return async function giveByAssertion(request) {
    const { parameters, facts } = request;
    // §4.4 of the draft: the client must authenticate.
    const { client, useUp } = await authenticate(request);
    facts.client = client.id;
    // RFC 7523 §2.1.
    const text = parameters.require('assertion');
    // A logout of the user from here on ends this grant, too.
    const logoutMark = await logouts.getMark();
    // RFC 7523 §3.
    const { user, jti, exp, sid, ...assertion } = await verifyAssertion(text, client.id);
    Object.assign(facts, nameUser(user));
    // RFC 6749 §3.3, RFC 8707 §2: granted is what the issuer, the configuration file and the client all name.
    const scopes = selectScopes(parameters, client, assertion);
    const resources = readGrantedResources(parameters, runtime, assertion, client);
    const claims = selectClaims(assertion.claims, oauth.identity.groupsClaim);
    // §13.3: LOGIN_ALLOWED settings count here, too.
    const refusal = providerLogins.findLoginRefusal({ user, claims });
    if (refusal !== undefined)
      fail('asserted_user_refused', { facts: { problem: refusal.forLog } });
    const granted = {
      id: createGrantId(),
      user,
      claims,
      provider: {},
      client: { id: client.id, name: client.name },
      assertion: { clientMark: client.mark },
      scopes,
      resources,
      sid,
    };
    return async function issueAndAnswer() {
      await useUp();
      // RFC 7523 §3: the assertion is accepted once, on all replicas together. This check is the last, so that a refused request
      // costs the client nothing; if the store fails after it, the client gets another assertion.
      const key = buildUserAssertionKey(hashSha256(JSON.stringify([user.issuer, jti])));
      const end = exp + oauth.tokens.clockToleranceSeconds;
      if (!(await claimOnce(store, key, computeNotedSeconds(end, clock.now()))))
        failMember('jti', jti, 'one that was not used');
      const grant = await issueGrant(granted, logoutMark, ENDED_MEANWHILE);
      return answer(grant, client.name, false);
    };
  };
}

/** Scopes that the issuer, the configuration file and the client all name; the response lists them. */
function selectScopes(
  parameters: RequestParameters,
  { scopes: ofClient }: AssertingClient,
  { scopes }: Pick<Assertion, 'scopes'>,
): readonly string[] {
  const asked = parameters.get('scope');
  const named = asked === undefined ? scopes : parseScope(asked);
  const isGranted = (one: string) => named.includes(one) && (ofClient?.includes(one) ?? true);
  return [...new Set(scopes.filter(isGranted))].slice(0, MAX_SCOPES);
}

const ENDED_MEANWHILE = 'The logins of this user were ended meanwhile. Try again.';

// §13.2: stored claims of an assertion: the same as of an ID token.

/** `groupsClaim` is OIDC_GROUPS_CLAIM. @throws GatewayError `unusable_assertion` if the claims are too large. */
function selectClaims(asserted: JsonObject, groupsClaim: string): JsonObject {
  // Distributed claims may come with an access token.
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

// RFC 8707: audience of the token: resources that the issuer, the configuration file and the client all name.

/** @throws GatewayError `unusable_assertion` for one with a different audience; `invalid_target`. */
function readGrantedResources(
  parameters: RequestParameters,
  own: OwnResources,
  { resources: asserted }: Pick<Assertion, 'resources'>,
  client: AssertingClient,
): readonly string[] {
  const foreign = asserted?.find((one) => selectOwnResources([one], own).length === 0);
  if (foreign !== undefined)
    failMember('resource', foreign, `${own.baseUrl}/mcp, ${own.baseUrl} or a server of it`);
  const select = (resources: readonly string[] | undefined) =>
    resources ? selectOwnResources(resources, own) : getDefaultResources(own);
  const ofAssertion = select(asserted);
  // Without the operators' API: a client calls it as itself, never for a user.
  const ofClient = select(client.resources?.map((one) => toUrl(one, own)));
  const granted = [
    ...new Set([
      ...ofAssertion.filter((one) => coversResource(ofClient, one, own)),
      ...ofClient.filter((one) => coversResource(ofAssertion, one, own)),
    ]),
  ];
  const asked = readAskedResources(parameters, own, client.id) ?? granted;
  const areGranted = asked.every((one) => coversResource(granted, one, own));
  if (asked.length > 0 && asked.length <= MAX_TOKEN_RESOURCES && areGranted) return asked;
  return fail('invalid_target', {
    details: 'The assertion is not for this resource, or the client may not have a token for it.',
  });
}

// Clients that may bring assertions: those in the configuration file, and those whose metadata document has keys.

/** Members that may be undefined exist only for clients in the configuration file. */
export interface AssertingClient extends ProvenClient {
  /** Name that the client gives itself. */
  readonly name?: string | undefined;
  readonly scopes: MachineClient['scopes'] | undefined;
  readonly resources: MachineClient['resources'];
  readonly mark: MachineClient['mark'] | undefined;
}

/** @throws GatewayError `unauthenticated_machine`; `client_keys_unavailable` if its host cannot be reached. */
export const createFindByDocument = (documents: ClientDocuments) =>
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
