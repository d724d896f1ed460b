// A gateway with an operators' page, and those who call it.
import { closeAfterTest } from '../lifetimes.ts';
import { type Broker, MCP, startBroker } from '../oauth/broker.ts';
import { type AuditLog, createAuditLog } from './audit-log.ts';
import type { TestResponse } from './gateway.ts';

export interface Operators {
  readonly broker: Broker;
  readonly audit: AuditLog;
  /** A token of an operator, or of whoever the claims say. */
  sign(claims?: Readonly<Record<string, unknown>>): Promise<string>;
  /** GET below `/admin/api` as an operator. */
  show(path: string, options?: ShowOptions): Promise<TestResponse>;
  act(path: string, options?: ShowOptions): Promise<TestResponse>;
  /** initialize as a user; resolves to the session's ID. */
  open(sub: string): Promise<string>;
}

interface ShowOptions {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The client of the provider that operators' scripts are. */
export const SCRIPT = 'ops-script';

/** Closed after the test. */
export async function startOperators(
  env: Readonly<Record<string, string>> = {},
  deps: Parameters<typeof startBroker>[1] = {},
): Promise<Operators> {
  const audit = await createAuditLog();
  const broker = closeAfterTest(
    await startBroker(
      { ADMIN_GROUPS: 'operators, /sre', ADMIN_CLIENTS: SCRIPT, ...audit.env, ...env },
      deps,
    ),
  );
  const { gateway } = broker;
  const sign: Operators['sign'] = (claims) =>
    broker.sign({
      sub: 'olga',
      groups: ['staff', 'operators'],
      aud: MCP,
      azp: SCRIPT,
      ...claims,
    });
  const request = async (method: string, path: string, { claims, headers }: ShowOptions = {}) =>
    gateway.request({
      method,
      path: `/admin/api${path}`,
      headers: { authorization: `Bearer ${await sign(claims)}`, ...headers },
    });

  return {
    broker,
    audit,
    sign,
    show: (path, options) => request('GET', path, options),
    act: (path, options) => request('DELETE', path, options),
    open: async (sub) => gateway.open({ token: await broker.sign({ sub, aud: MCP }) }),
  };
}
