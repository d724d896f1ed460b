// The official client 1.x with everything in memory, and a login without a browser.
import {
  type OAuthClientProvider,
  UnauthorizedError,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { logInAs } from '../../../scripts/demo/login.ts';
import { REDIRECT_URI } from '../gateway/service.ts';

export interface Memory extends OAuthClientProvider {
  /** Everything the client was ever given, oldest first. */
  readonly saved: {
    readonly clients: OAuthClientInformationMixed[];
    readonly tokens: OAuthTokens[];
    readonly authorizations: URL[];
  };
}

export function createMemory(): Memory {
  const saved: Memory['saved'] = { clients: [], tokens: [], authorizations: [] };
  let client: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let verifier = '';
  return {
    saved,
    redirectUrl: REDIRECT_URI,
    clientMetadata: { client_name: 'Test', redirect_uris: [REDIRECT_URI] },
    state: () => 'state',
    clientInformation: () => client,
    saveClientInformation(given) {
      client = given;
      saved.clients.push(given);
    },
    tokens: () => tokens,
    saveTokens(given) {
      tokens = given;
      saved.tokens.push(given);
    },
    saveCodeVerifier(given) {
      verifier = given;
    },
    codeVerifier: () => verifier,
    redirectToAuthorization: (url) => void saved.authorizations.push(url),
    invalidateCredentials(scope) {
      if (scope === 'all' || scope === 'client') client = undefined;
      if (scope === 'all' || scope === 'tokens') tokens = undefined;
    },
  };
}

/** As if its access token had expired: the next call is refused. */
export function spoil(memory: Memory): void {
  const tokens = memory.saved.tokens.at(-1);
  if (tokens === undefined) throw new Error('The client has no tokens.');
  memory.saveTokens({ ...tokens, access_token: 'no longer good' });
}

export interface Connection {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** What a test wants of its client beyond the usual. */
export interface Making<Client> {
  readonly newClient?: () => Client;
  readonly fetch?: typeof fetch;
  /** Who logs in, of the client 2.x; `ada` unless given. */
  readonly name?: string;
}

/** Connects, logging `name` in where the gateway asks for it. */
export async function connect(
  url: URL,
  memory: Memory,
  name = 'ada',
  { newClient = plainClient, fetch }: Making<Client> = {},
): Promise<Connection> {
  const newTransport = () =>
    new StreamableHTTPClientTransport(url, { authProvider: memory, ...(fetch && { fetch }) });
  const first = newTransport();
  try {
    return await open(newClient(), first);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const authorization = memory.saved.authorizations.at(-1);
  if (authorization === undefined) throw new Error('The client was not sent to log in.');
  const back = await logInAs(name, authorization, REDIRECT_URI);
  await first.finishAuth(back?.searchParams.get('code') ?? '');
  return open(newClient(), newTransport());
}

const plainClient = () => new Client({ name: 'test', version: '1' });

async function open(client: Client, transport: StreamableHTTPClientTransport): Promise<Connection> {
  // The SDK's own types do not fit exactOptionalPropertyTypes.
  await client.connect(transport as Transport);
  return { client, transport };
}
