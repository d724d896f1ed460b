// The same request in any revision: in a session of that version, or without one.
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';
import { INITIALIZE_REQUEST } from '../gateway/gateway.ts';
import { LOG_LEVEL, STATELESS, statelessRequest } from './stateless.ts';

type Params = Readonly<Record<string, unknown>>;

export interface RevisionClient {
  /** One request, with id 1. */
  ask(method: string, params?: Params): Promise<TestResponse>;
  /** Message and headers of the same, for those who send it in another way. */
  request(method: string, params?: Params): Promise<Sent>;
  /** Undefined in the stateless era. */
  readonly session: string | undefined;
}

export interface Sent {
  readonly message: object;
  readonly headers: Readonly<Record<string, string>>;
}

export const SESSION_REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;
export const REVISIONS = [...SESSION_REVISIONS, STATELESS] as const;

/** Asks as a client of the revision that can answer all that the revision can ask. */
export async function openRevisionClient(
  gateway: TestGateway,
  revision: string,
): Promise<RevisionClient> {
  const answers = { sampling: {}, roots: {} };
  const capabilities = revision === '2025-03-26' ? answers : { ...answers, elicitation: {} };
  const session =
    revision === STATELESS ? undefined : await openSession(gateway, revision, capabilities);

  function sent(method: string, params: Params): Sent {
    if (session !== undefined) {
      const message = { jsonrpc: '2.0', id: 1, method, params };
      return { message, headers: { 'mcp-session-id': session, 'mcp-protocol-version': revision } };
    }
    const { _meta, ...own } = params;
    const meta = {
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      [LOG_LEVEL]: 'debug',
      ...(_meta as Params),
    };
    return statelessRequest(method, own, { meta });
  }

  async function request(method: string, params: Params = {}): Promise<Sent> {
    const { message, headers } = sent(method, params);
    const authorization = `Bearer ${await gateway.issuer.sign()}`;
    return { message, headers: { authorization, ...headers } };
  }

  return {
    session,
    request,
    async ask(method, params) {
      const { message, headers } = await request(method, params);
      return gateway.rpc(message, { headers });
    },
  };
}

async function openSession(gateway: TestGateway, protocolVersion: string, capabilities: object) {
  const params = { ...INITIALIZE_REQUEST.params, protocolVersion, capabilities };
  const { json, headers } = await gateway.rpc({ ...INITIALIZE_REQUEST, params });
  const session = headers['mcp-session-id'];
  if (session === undefined || json.result.protocolVersion !== protocolVersion) {
    throw new Error(`initialize of ${protocolVersion} answered ${JSON.stringify(json)}`);
  }
  return session;
}
