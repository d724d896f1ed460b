// RFC 6749 §4.1.3: a client redeems its code, for tokens of the gateway's own.

import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import { parseScope } from '../../config/scope.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Client, Clients } from '../clients/clients.ts';
import { type Grant, issueFirstPair, nameUser } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import type { OwnResources } from '../request/authorization-request.ts';
import { type Codes, type CodeUse, failCode, type GrantCode, readCodeRequest } from './codes.ts';
import type { AskedPair } from './decide-refresh.ts';
import type { EndGrant } from './end-grant.ts';
import type { IssueGrant } from './issue-grant.ts';
import { coversResource, failTarget, readAskedResources } from './resources.ts';
import type { TellProvider } from './tell-provider.ts';

export interface RedeemCodeDeps {
  readonly config: OwnResources & Pick<TokensConfig, 'accessSeconds'>;
  readonly clients: Clients;
  readonly codes: Codes;
  readonly grants: Pick<Grants, 'capExpiry'>;
  readonly issueGrant: IssueGrant;
  readonly endGrant: EndGrant;
  readonly endGrantSoon: EndGrant;
  readonly tellProviderInTurn: TellProvider;
  readonly answer: (grant: Grant, client: Client) => Reply;
  readonly clock: Clock;
  readonly log: Log;
}

export function createRedeemCode(deps: RedeemCodeDeps) {
  const { config, clients, codes, grants, issueGrant, endGrant, clock } = deps;

  return async function redeemCode(parameters: RequestParameters): Promise<JudgedRequest> {
    const request = readCodeRequest(parameters);
    const looking = codes.isSpent(request);
    // What is wrong with the client is said first.
    looking.catch(() => {});
    const client = await clients.requireWithoutFetch(request.clientId);
    const asked = readAskedPair(parameters, client, config);
    return (await looking) ? { runAnonymous: redeem } : redeem;

    async function redeem(): Promise<Reply> {
      const use = await codes.use(request);
      if (use.kind === 'again') return endReused(use, client);
      const grant = createGrant(use, asked);
      const issued = await issueGrant(grant, use.code.logoutMark);
      if (issued === undefined) return failCode(ENDED_MEANWHILE);
      const { id: grantId, user } = issued;
      if (await finish(grantId, request.code, client)) return endReused({ grantId, user }, client);
      return deps.answer(issued, client);
    }
  };

  /** Whether the code was used again meanwhile. */
  async function finish(grantId: string, code: string, client: Client): Promise<boolean> {
    try {
      // Whoever comes again leaves a mark before ending the grant, which stands by now: one of the two sees the other.
      const [wasUsedAgain] = await Promise.all([
        codes.wasUsedAgain(code),
        clients.recordUse(client),
      ]);
      return wasUsedAgain;
    } catch (cause) {
      // Its client hears of no tokens, and the code is used up.
      deps.endGrantSoon(grantId, 'unfinished').catch(() => {});
      throw cause;
    }
  }

  /** @throws GatewayError where it comes to no grant; what the provider gave for it is nobody's then. */
  function createGrant(use: Extract<CodeUse, { kind: 'first' }>, asked: AskedPair): Grant {
    const { code, grantId, problem } = use;
    try {
      if (problem !== undefined) failCode(problem);
      return grants.capExpiry(buildGrant(code, grantId, asked));
    } catch (refusal) {
      void deps.tellProviderInTurn(code);
      throw refusal;
    }
  }

  function buildGrant(code: GrantCode, id: string, asked: AskedPair): Grant {
    const { clientId, clientName, redirectUri, scopes, resources } = code;
    const { user, claims, userinfoClaims, sid, provider } = code;
    if (asked.scopes?.some((one) => !scopes.includes(one))) fail('invalid_scope');
    if (asked.resources?.some((one) => !coversResource(resources, one, config))) failTarget();
    const now = clock.now();
    return {
      id,
      user,
      claims,
      userinfoClaims,
      sid,
      provider,
      client: { id: clientId, name: clientName, redirectHost: new URL(redirectUri).host },
      scopes,
      resources,
      createdAt: now,
      renewedAt: now,
      issued: issueFirstPair(
        { scopes: asked.scopes ?? scopes, resources: asked.resources ?? resources },
        now,
        config.accessSeconds,
      ),
    };
  }

  /** RFC 6749 §4.1.2: whose of the two the tokens are, nobody can tell. */
  async function endReused(
    { grantId, user }: Omit<Extract<CodeUse, { kind: 'again' }>, 'kind'>,
    client: Client,
  ): Promise<never> {
    await endGrant(grantId, 'reuse');
    deps.log.warn(
      'An authorization code was used twice by whoever has its code_verifier. It may have been stolen, so the login has ended.',
      { ...nameUser(user), client: client.id, grant: grantId },
    );
    return fail('authorization_code_reused', { facts: { ...nameUser(user), grantId } });
  }
}

export function readAskedPair(
  parameters: RequestParameters,
  { id }: Pick<Client, 'id'>,
  own: OwnResources,
): AskedPair {
  const scopes = parseScope(parameters.get('scope'));
  return {
    scopes: scopes.length === 0 ? undefined : scopes,
    resources: readAskedResources(parameters, own, id),
  };
}

const ENDED_MEANWHILE = 'All logins like this one were ended while it was under way. Log in again.';
