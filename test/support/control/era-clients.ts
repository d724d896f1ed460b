// A client of each era at any path, which answers what it is asked, and keeps all that it is told.

import { openEvents } from '../clients/event-stream.ts';
import { BOTH_TYPES } from '../clients/session-client.ts';
import { ASKABLE, eventsIn, LOG_LEVEL, statelessRequest } from '../clients/stateless.ts';
import { INITIALIZE_REQUEST } from '../gateway/gateway.ts';
import type { CatalogGateway } from '../upstreams/catalog-gateway.ts';

export type Params = Readonly<Record<string, unknown>>;

export interface EraClient {
  /** A request, and what follows until its answer; resolves to all that the client was told meanwhile. */
  ask(method: string, params?: Params): Promise<string>;
  /** What the gateway said of itself and of its servers at first. */
  readonly greeting: string;
}

export interface EraOptions {
  readonly path: string;
  readonly token?: string;
  /** The answer to a question of a server. */
  readonly answer?: object;
}

const ACCEPTED = { action: 'accept', content: {} };

export async function openSessionEra(
  gateway: CatalogGateway,
  { path, token, answer = ACCEPTED }: EraOptions,
): Promise<EraClient> {
  const authorization = `Bearer ${token ?? (await gateway.issuer.sign())}`;
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
  const params = { ...INITIALIZE_REQUEST.params, capabilities };
  const opened = await gateway.request({
    method: 'POST',
    path,
    body: { ...INITIALIZE_REQUEST, params },
    headers: { authorization },
  });
  const session = opened.headers['mcp-session-id'];
  if (session === undefined) return { greeting: opened.text, ask: async () => opened.text };
  const port = await gateway.listen();
  const headers = { authorization, 'mcp-session-id': session, accept: BOTH_TYPES };
  const send = (message: object) =>
    openEvents({ port, path, headers, body: { jsonrpc: '2.0', ...message } });

  async function ask(method: string, asked: Params = {}): Promise<string> {
    const stream = await send({ id: 1, method, params: asked });
    if (!stream.isStream) return stream.text();
    let told = '';
    for await (const { data } of stream) {
      told += `${data}\n`;
      const { id, method: question } = JSON.parse(data === '' ? '{}' : data);
      if (question !== undefined && id !== undefined)
        await (await send({ id, result: answer })).text();
    }
    return told;
  }

  await ask('logging/setLevel', { level: 'debug' });
  return { greeting: opened.text, ask };
}

export async function openStatelessEra(
  gateway: CatalogGateway,
  { path, token, answer = ACCEPTED }: EraOptions,
): Promise<EraClient> {
  const authorization = `Bearer ${token ?? (await gateway.issuer.sign())}`;

  async function send(method: string, { _meta, ...params }: Params): Promise<string> {
    const meta = { ...ASKABLE, [LOG_LEVEL]: 'debug', ...(_meta as object | undefined) };
    const { message, headers } = statelessRequest(method, params, { meta });
    const answered = await gateway.request({
      method: 'POST',
      path,
      body: message,
      headers: { ...headers, authorization, accept: BOTH_TYPES },
    });
    return answered.text;
  }

  async function ask(method: string, params: Params = {}): Promise<string> {
    const first = await send(method, params);
    const retry = toRetry(first, answer);
    return retry === undefined ? first : `${first}\n${await send(method, { ...params, ...retry })}`;
  }

  return { greeting: await send('server/discover', {}), ask };
}

/** What a call has besides when it is made again; undefined where nothing was asked. */
export function toRetry(told: string, answer: object = ACCEPTED): Params | undefined {
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  const messages: readonly any[] = told.startsWith('{') ? [JSON.parse(told)] : eventsIn(told);
  const { inputRequests, requestState } = messages.at(-1)?.result ?? {};
  if (inputRequests === undefined) return undefined;
  const inputResponses = Object.fromEntries(
    Object.keys(inputRequests).map((name) => [name, answer]),
  );
  return { inputResponses, requestState };
}
