// Facts of a login beside its reply. Log, audit log and the list of failed logins take it from here.

import { GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import { type JudgedRequest, wrapRun } from '../../http/endpoint/endpoint.ts';
import type { PendingReply, Reply, RequestBody } from '../../http/endpoint/message.ts';
import { hasTooManyParameters } from '../../http/endpoint/parameters.ts';
import { isObject } from '../../platform/json.ts';
import { type Log, truncateForLog } from '../../platform/log.ts';

/** Among the facts of a reply, or of what was thrown. */
export type LoginFacts = Readonly<{
  /** OAuth client ID, as it was sent. */
  client?: string;
  /** `sub` of the user who got a token. */
  user?: string;
  /** The issuer whose user that is; absent for those of `OIDC_ISSUER`, where only these can be. */
  issuer?: string;
  /** The ID of the login, where the gateway issues tokens of its own. */
  grantId?: string;
  /** The type of grant that the token endpoint was asked for. */
  grant?: (typeof GRANTS)[number];
}>;

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const GRANTS = ['authorization_code', 'refresh_token', 'client_credentials', JWT_BEARER] as const;

/** Judges a request and does the work that is left; both replies and errors have the facts, unless they know better. */
export async function addFacts(
  facts: LoginFacts,
  judge: () => Promise<PendingReply>,
): Promise<PendingReply> {
  return runWith(facts, await judge().catch(rethrowWith(facts)));
}

/** Likewise for an endpoint. */
export async function addFactsOfRequest(facts: LoginFacts, judge: () => Promise<JudgedRequest>) {
  return wrapRun(await judge().catch(rethrowWith(facts)), (run) => runWith(facts, run));
}

const runWith = (facts: LoginFacts, pending: PendingReply) =>
  async function run(): Promise<Reply> {
    const reply = await Promise.resolve().then(pending).catch(rethrowWith(facts));
    return { ...reply, facts: { ...facts, ...reply.facts } };
  };

const rethrowWith = (facts: LoginFacts) => (thrown: unknown) => {
  const error = toGatewayError(thrown);
  const { failure } = error;
  throw new GatewayError(error.key, {
    ...failure,
    details: error.message,
    facts: { ...facts, ...failure.facts },
  });
};

export function readFacts(facts: Reply['facts'] = {}): LoginFacts {
  const { client, user, issuer, grant, grantId } = facts;
  return {
    ...toLoginFacts(client, user, grant),
    ...(typeof issuer === 'string' && { issuer }),
    ...(typeof grantId === 'string' && { grantId }),
  };
}

/** Facts that a query or a body has which is not judged yet. One that is too long to be served is not read. */
export function readAskedFacts(source: string | RequestBody): LoginFacts {
  if (typeof source !== 'string' && source.type === 'json') {
    const { client_id, grant_type } = isObject(source.value) ? source.value : {};
    return toAskedFacts(client_id, grant_type);
  }
  const text = typeof source === 'string' ? source : source.text;
  if (hasTooManyParameters(text)) return {};
  const parameters = new URLSearchParams(text);
  // RFC 6749 §3.1: one without a value counts as omitted.
  const find = (name: string) => parameters.getAll(name).find((value) => value !== '');
  return toAskedFacts(find('client_id'), find('grant_type'));
}

const toAskedFacts = (client: unknown, grant: unknown) =>
  toLoginFacts(
    typeof client === 'string' && client !== '' ? truncateForLog(client) : undefined,
    undefined,
    grant,
  );

function toLoginFacts(client: unknown, user: unknown, grantType: unknown): LoginFacts {
  const grant = GRANTS.find((one) => one === grantType);
  return {
    ...(typeof client === 'string' && { client }),
    ...(typeof user === 'string' && { user }),
    ...(grant && { grant }),
  };
}

// One line of the log for every login, which says who and by which client, and never the token.

interface NamedLogin {
  readonly clientId: string;
  /** The name that the client gives itself. */
  readonly clientName: string | undefined;
  /** `sub` of the user; undefined where the access token names nobody. */
  readonly user: string | undefined;
  /** The issuer whose user that is; undefined in proxy mode, where the provider's own tokens say who it is. */
  readonly issuer?: string | undefined;
}

interface LoggedLogin extends NamedLogin {
  /** The tokens came by a refresh token, which happens every few minutes. */
  readonly isRefresh: boolean;
  /** The tokens were the last answer of the grant, given again. */
  readonly isLastAnswer?: boolean;
}

const MAX_LOGGED_NAME = 100;

/** User and client, as the log says it wherever a login begins or ends. */
export const describeLogin = ({ clientId, clientName, user, issuer }: NamedLogin) => ({
  client: clientId,
  clientName: clientName?.slice(0, MAX_LOGGED_NAME),
  user,
  issuer,
});

/** Returns the facts of the reply that has the tokens. */
export function logLogin(log: Log, { isRefresh, isLastAnswer, ...login }: LoggedLogin): LoginFacts {
  const { user, issuer } = login;
  const facts = describeLogin(login);
  if (isRefresh) log.debug('Refreshed.', { ...facts, ...(isLastAnswer && { isLastAnswer }) });
  else log.info('Logged in.', facts);
  return { ...(user !== undefined && { user }), ...(issuer !== undefined && { issuer }) };
}
