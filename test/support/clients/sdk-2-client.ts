// The official client 2.x with everything in memory, and a login without a browser.
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { logInAs } from '../../../scripts/demo/login.ts';
import { REDIRECT_URI } from '../gateway/service.ts';
import {
  createMemory as createMemory1,
  type Making,
  type Memory as Memory1,
} from './sdk-1-client.ts';

/** Beside what version 1 keeps, whom it asked: the callback must come from there. */
export type Memory = Memory1 & Pick<OAuthClientProvider, 'discoveryState' | 'saveDiscoveryState'>;

export function createMemory(): Memory {
  let discovery: OAuthDiscoveryState | undefined;
  return {
    ...createMemory1(),
    saveDiscoveryState(given) {
      discovery = given;
    },
    discoveryState: () => discovery,
  };
}

export interface Connection {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** Connects, logging the person in where the gateway asks for it; `change` has the callback's query. */
export async function connect(
  url: URL,
  memory: Memory,
  change: (query: URLSearchParams) => void = () => {},
  { newClient = plainClient, fetch, name = 'ada' }: Making<Client> = {},
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
  const query = new URLSearchParams(back?.search);
  change(query);
  await first.finishAuth(query);
  return open(newClient(), newTransport());
}

const plainClient = () => new Client({ name: 'test', version: '1' });

async function open(client: Client, transport: StreamableHTTPClientTransport): Promise<Connection> {
  await client.connect(transport);
  return { client, transport };
}
