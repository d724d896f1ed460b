// Operators of a gateway that issues tokens of its own: they log in by the operators' page, as its browser does.
import { expect } from 'vitest';
import { type AuditLog, createAuditLog } from '../gateway/audit-log.ts';
import type { TestResponse } from '../gateway/gateway.ts';
import { newPkce } from './login-steps.ts';
import {
  BASE,
  type OwnTokenGateway,
  type OwnTokenOptions,
  type OwnTokenSetup,
  startOwnTokens,
  type Tokens,
  toTokens,
} from './own-tokens.ts';

export const PAGE = 'postern-operators';
export const PLAYGROUND = 'postern-playground';
export const OLGA = {
  sub: 'olga',
  name: 'Olga',
  email: 'olga@ops.example',
  groups: ['operators'],
};

export interface OperatorSetup extends OwnTokenSetup {
  readonly audit: AuditLog;
}

export async function startOperatedGateways(options: OwnTokenOptions = {}): Promise<OperatorSetup> {
  const audit = await createAuditLog();
  const own = await startOwnTokens({
    ...options,
    env: { ADMIN_GROUPS: 'operators', ...audit.env, ...options.env },
  });
  return { ...own, audit };
}

/** By a client of the gateway's own, such as the page. */
export async function logInBy(
  own: OwnTokenGateway,
  clientId: string,
  claims: Readonly<Record<string, unknown>> = OLGA,
): Promise<Tokens> {
  const client = { id: clientId, ...newPkce() };
  const uri = { redirect_uri: `${BASE}/playground/callback` };
  const back = await own.logInTo(client, claims, uri);
  return toTokens(client, await own.steps.redeem(client, back, uri));
}

/** Below `/admin/api`. */
export const ask = (
  { gateway }: Pick<OwnTokenGateway, 'gateway'>,
  access: string,
  path: string,
  method = 'GET',
): Promise<TestResponse> =>
  gateway.request({
    method,
    path: `/admin/api${path}`,
    headers: { authorization: `Bearer ${access}` },
  });

export async function listGrants(
  own: Pick<OwnTokenGateway, 'gateway'>,
  access: string,
  query = '',
): Promise<readonly ShownGrant[]> {
  const { status, json } = await ask(own, access, `/grants${query}`);
  expect(status).toBe(200);
  return json.grants;
}

/** Whether calls with it are let in; `token_revoked` where its grant has ended. */
export async function tryCall(own: OwnTokenGateway, { access }: Tokens): Promise<string> {
  const { status, json } = await own.call(access);
  return status === 200 ? 'let in' : json.error.data.reason;
}

export interface ShownGrant {
  readonly id: string;
  readonly user: string;
  readonly name?: string;
  readonly client: { readonly id: string; readonly name?: string };
}
