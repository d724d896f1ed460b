// The gateways that are walked through: the embedded store, metrics, a log line for each request, real HTTP.

import type { Deps } from '../../src/gateway/gateway.ts';
import { createLog } from '../../src/platform/log.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
  type TestResponse,
} from '../../test/support/gateway/gateway.ts';
import { type Client, createLoginSteps } from '../../test/support/oauth/login-steps.ts';
import { startUpstream } from '../../test/support/oauth/upstream.ts';
import { readFile } from '../../test/support/upstreams/gateway-file.ts';
import { startSdk1Http } from '../../test/support/upstreams/sdk-1-http.ts';
import { createHeldClock, type HeldClock } from './held-clock.ts';
import { createSender, type Sender } from './send.ts';

/** A call that can be made again and again. */
export interface Stage {
  readonly clock: HeldClock;
  /** Does what comes before the call, and returns the call itself. */
  prepare(): Promise<() => Promise<TestResponse>>;
  close(): Promise<void>;
}

interface ListeningGateway extends Sender {
  readonly gateway: TestGateway;
  readonly clock: HeldClock;
  close(): Promise<void>;
}

async function listen(
  env: Readonly<Record<string, string>> = {},
  deps: Partial<Deps> = {},
): Promise<ListeningGateway> {
  const log = createLog('info', { destination: { write: () => {} } });
  const clock = createHeldClock();
  const gateway = await startGateway({ env, deps: { log, clock, ...deps } });
  const sender = createSender(await gateway.listen(), gateway.baseUrl);
  return {
    gateway,
    clock,
    request: sender.request,
    async close() {
      sender.close();
      await gateway.close();
    },
  };
}

/** One user's POST /mcp, with the same token each time. */
async function createPost({ gateway, request }: ListeningGateway) {
  const token = await gateway.issuer.sign();
  return (body: object, session?: string): Promise<TestResponse> =>
    request({
      method: 'POST',
      path: '/mcp',
      body,
      headers: {
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        ...(session !== undefined && {
          'mcp-session-id': session,
          'mcp-protocol-version': INITIALIZE_REQUEST.params.protocolVersion,
        }),
      },
    });
}

export async function stageInitialize(): Promise<Stage> {
  const listening = await listen();
  const { clock, close } = listening;
  const post = await createPost(listening);
  return { clock, prepare: async () => () => post(INITIALIZE_REQUEST), close };
}

/** A call of the gateway's own catalogue, in a session. */
export const stageCall = async (method: string, params?: object): Promise<Stage> =>
  callInSession(await listen(), { method, params });

async function callInSession(
  listening: ListeningGateway,
  call: { readonly method: string; readonly params: object | undefined },
): Promise<Stage> {
  const post = await createPost(listening);
  const { headers } = await post(INITIALIZE_REQUEST);
  const session = headers['mcp-session-id'];
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
  return {
    clock: listening.clock,
    prepare: async () => () => post({ jsonrpc: '2.0', id: 2, ...call }, session),
    close: listening.close,
  };
}

/** A call to a tool on a server with sessions, over streamable HTTP. */
export async function stageRelay(): Promise<Stage> {
  const server = await startSdk1Http();
  const file = await readFile({ mcpServers: { server: { url: server.url } } });
  const params = { name: 'server__echo', arguments: { text: 'hello' } };
  const stage = await callInSession(await listen({}, { file }), { method: 'tools/call', params });
  return {
    ...stage,
    async close() {
      await stage.close();
      await server.close();
    },
  };
}

type LoginSteps = ReturnType<typeof createLoginSteps>;

/** Broker mode: `prepareCall` goes as far as the call that is wanted, each time with a new login of the same client. */
export async function stageBroker(
  prepareCall: (steps: LoginSteps, client: Client) => ReturnType<Stage['prepare']>,
): Promise<Stage> {
  const provider = await startUpstream();
  const listening = await listen({
    OAUTH_MODE: 'broker',
    OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
    OAUTH_TOKEN_URL: `${provider.url}/token`,
    OAUTH_CLIENT_ID: 'provider-client',
    OAUTH_CLIENT_SECRET: 'provider-secret',
    OAUTH_CONSENT_RATE_LIMIT_MAX: '10000',
    OAUTH_CALLBACK_RATE_LIMIT_MAX: '10000',
    OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
  });
  const { gateway, clock } = listening;
  const steps = createLoginSteps(listening);
  const { approve } = steps;
  steps.approve = async (...login) => {
    const approved = await approve(...login);
    const iat = Math.floor(clock.now() / 1000);
    const nonce = approved.asked.searchParams.get('nonce');
    const tokens = {
      access_token: 'of the provider',
      refresh_token: 'of the provider, too',
      id_token: await gateway.issuer.sign({ aud: 'provider-client', iat, exp: iat + 300, nonce }),
      token_type: 'Bearer',
      expires_in: 3600,
    };
    provider.answer((res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(tokens));
    });
    return approved;
  };
  const client = await steps.register();
  return {
    clock,
    prepare: () => prepareCall(steps, client),
    async close() {
      await listening.close();
      await provider.close();
    },
  };
}
