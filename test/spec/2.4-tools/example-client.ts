// The official client 2.x in either era, with what its user and its model answer.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Era } from '../../../src/mcp/protocol/revisions.ts';

export interface ExampleClient {
  readonly client: Client;
  /** Log messages that came. */
  readonly logged: readonly unknown[];
  /** URIs of resources that it was told have changed. */
  readonly updated: readonly string[];
  /** What its user does with the form of this message; a message of none is declined. */
  answer(message: string, content: Readonly<Record<string, Primitive>>): void;
}

export interface ExampleClientOptions {
  readonly era: Era;
  readonly url: string;
  readonly token: string;
  /** What its model says; without it the client has neither model nor forms. */
  readonly model?: string;
}

type Primitive = string | number | boolean;

export async function connectExampleClient(options: ExampleClientOptions): Promise<ExampleClient> {
  const { era, url, token, model } = options;
  const answers = new Map<string, Record<string, Primitive>>();
  const logged: unknown[] = [];
  const updated: string[] = [];
  const client = new Client(
    { name: 'test', version: '1' },
    {
      capabilities: model === undefined ? {} : { elicitation: {}, sampling: {} },
      ...(era === 'stateless' && { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    },
  );
  client.setNotificationHandler('notifications/message', ({ params }) => {
    logged.push(params);
  });
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    updated.push(params.uri);
  });
  if (model !== undefined) {
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const content = answers.get(params.message);
      return content === undefined ? { action: 'decline' } : { action: 'accept', content };
    });
    client.setRequestHandler('sampling/createMessage', () => ({
      role: 'assistant',
      model: 'test-model',
      content: { type: 'text', text: model },
    }));
  }
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
  );
  return {
    client,
    logged,
    updated,
    answer: (message, content) => void answers.set(message, { ...content }),
  };
}
