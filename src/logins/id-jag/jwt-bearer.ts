// RFC 7523 §2.1, draft-ietf-oauth-identity-assertion-authz-grant §4.4: a client brings what its user's identity provider says, and gets a
// token for that user. There is no refresh token: the provider is asked again, so that it goes on deciding.

import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import { parseScope } from '../../config/scope.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { PendingReply, Reply } from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { buildUserAssertionKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import { computeNotedSeconds } from '../auth/claims.ts';
import type { IssueGrant, WriteTokens } from '../broker/issue-grant.ts';
import type { Logouts } from '../broker/logouts.ts';
import type {
  ClientAuthentication,
  ClientRequest,
} from '../client-authentication/authenticate-client.ts';
import { createGrantId, type Grant, issueFirstPair, nameUser } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import { MAX_SCOPES } from '../grants/token-codec.ts';
import type { FindLoginRefusal } from '../identity/login-policy.ts';
import type { LogLogin } from '../provider/issued-tokens.ts';
import { addFacts } from '../request/login-facts.ts';
import type { OwnResources } from '../request/parameters.ts';
import type { AssertingClient } from './asserting-client.ts';
import { type Assertion, failMember } from './assertion.ts';
import { readGrantedResources } from './granted-resources.ts';
import { selectClaims } from './select-claims.ts';
import type { VerifyAssertion } from './verify-assertion.ts';

export interface JwtBearerDeps {
  readonly config: OwnResources &
    Pick<TokensConfig, 'accessSeconds' | 'clockToleranceSeconds'> & {
      readonly groupsClaim: string;
    };
  readonly authentication: Pick<ClientAuthentication<AssertingClient>, 'authenticate'>;
  readonly verifyAssertion: VerifyAssertion;
  readonly findLoginRefusal: FindLoginRefusal;
  readonly store: Pick<KeyValue, 'compareAndSet'>;
  readonly grants: Pick<Grants, 'capExpiry'>;
  readonly logouts: Pick<Logouts, 'getMark'>;
  readonly issueGrant: IssueGrant;
  readonly writeTokens: WriteTokens;
  readonly logLogin: LogLogin;
  readonly clock: Clock;
}

export type GiveByAssertion = (request: ClientRequest) => Promise<PendingReply>;

export function createGiveByAssertion(deps: JwtBearerDeps): GiveByAssertion {
  const { config, authentication, verifyAssertion, store, grants, logouts, clock } = deps;

  return async function giveByAssertion(request) {
    const { client, useUp } = await authentication.authenticate(request);
    return addFacts({ client: client.id }, async () => {
      const text = request.parameters.require('assertion');
      // What is ended from here on ends this, too.
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
      resources: readGrantedResources(parameters, config, { assertion, client }),
    };
    const now = clock.now();
    return {
      id: createGrantId(),
      user: assertion.user,
      claims: selectClaims(assertion.claims, config.groupsClaim),
      provider: {},
      client: { id: client.id, name: client.name },
      assertion: { clientMark: client.mark },
      ...granted,
      sid: assertion.sid,
      createdAt: now,
      renewedAt: now,
      issued: issueFirstPair(granted, now, config.accessSeconds),
    };
  }

  function checkMayLogIn({ user, claims }: Grant): void {
    const refusal = deps.findLoginRefusal({ user, claims });
    if (refusal !== undefined)
      fail('asserted_user_refused', { facts: { problem: refusal.forLog } });
  }

  /**
   * RFC 7523 §3: good once, on all replicas together. All else was judged before, so that a request that is refused costs nothing;
   * if the store fails after it, the client gets another assertion.
   */
  async function spend({ user, jti, exp }: Assertion): Promise<void> {
    const key = buildUserAssertionKey(hashSha256(JSON.stringify([user.issuer, jti])));
    const seconds = computeNotedSeconds(exp + config.clockToleranceSeconds, clock.now());
    if (await store.compareAndSet(key, undefined, '1', seconds)) return;
    failMember('jti', jti, 'one that was not used');
  }

  async function issue(grant: Grant, logoutMark: number): Promise<Reply> {
    const issued = await deps.issueGrant(grants.capExpiry(grant), logoutMark);
    if (issued === undefined) return fail('invalid_grant', { details: ENDED_MEANWHILE });
    const { client, user, id } = issued;
    const login = { clientId: client.id, clientName: client.name, ...nameUser(user) };
    const facts = { ...deps.logLogin({ ...login, isRefresh: false }), grantId: id };
    return { ...deps.writeTokens(issued, clock.now()), facts };
  }
}

/** What the issuer, the configuration file and the client all name: the answer says which they are. */
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
