// A person by a client of the test's own, which cannot be asked by URL: what it sends and gets, as it is on the wire.
import { createHash, randomBytes } from 'node:crypto';
import { logInAs } from '../../../scripts/demo/login.ts';
import { statelessRequest } from '../clients/stateless.ts';
import { REDIRECT_URI } from '../gateway/service.ts';
import type { CallResult } from './connecting-clients.ts';

export interface GatewayUser {
  readonly person: string;
  readonly accessToken: string;
  /** MCP 2026-07-28, with `_meta` beside the usual. */
  ask(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    meta?: object,
  ): Promise<RpcAnswer>;
  /** tools/call: `server__tool`. */
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<CallResult>;
  listToolNames(): Promise<readonly string[]>;
  /** All that it was answered. */
  text(): string;
}

export interface RpcAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export async function createGatewayUser(
  baseUrl: string,
  person: string,
  send: typeof fetch,
  clientName = 'Test',
): Promise<GatewayUser> {
  const answered: string[] = [];
  const accessToken = await logIn(baseUrl, person, send, clientName);

  const user: GatewayUser = {
    person,
    accessToken,
    async ask(method, params, meta = {}) {
      const { message, headers } = statelessRequest(method, params, { meta: { ...meta } });
      const answer = await send(`${baseUrl}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${accessToken}`,
          ...headers,
        },
        body: JSON.stringify(message),
      });
      const text = await answer.text();
      answered.push(JSON.stringify([...answer.headers]), text);
      return { status: answer.status, headers: answer.headers, json: readMessage(text) };
    },
    async call(name, args = {}) {
      const { status, json } = await user.ask('tools/call', { name, arguments: args });
      const { result } = json ?? {};
      if (result === undefined)
        throw new Error(`${name} was answered ${status}: ${JSON.stringify(json)}`);
      const content: readonly { readonly text?: string }[] = result.content ?? [];
      return {
        isError: result.isError === true,
        text: content.map(({ text = '' }) => text).join('\n'),
      };
    },
    async listToolNames() {
      const { json } = await user.ask('tools/list');
      const tools: readonly { readonly name: string }[] = json.result.tools;
      return tools.map(({ name }) => name);
    },
    text: () => answered.join('\n'),
  };
  return user;
}

/** The last message of a stream, or the only one. */
function readMessage(text: string): unknown {
  if (text === '') return undefined;
  if (!text.startsWith('event:') && !text.startsWith(':')) return JSON.parse(text);
  const data = text.split('\n').filter((line) => line.startsWith('data: '));
  return JSON.parse(data.at(-1)?.slice('data: '.length) ?? 'null');
}

async function logIn(
  baseUrl: string,
  person: string,
  send: typeof fetch,
  clientName: string,
): Promise<string> {
  const registered = await send(`${baseUrl}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [REDIRECT_URI], client_name: clientName }),
  });
  const { client_id: clientId = '' } = (await registered.json()) as { client_id?: string };
  const verifier = randomBytes(32).toString('base64url');
  const url = new URL(`${baseUrl}/oauth/authorize`);
  url.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    state: 'state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();
  const back = await logInAs(person, url, REDIRECT_URI);
  const answer = await send(`${baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: back?.searchParams.get('code') ?? '',
      redirect_uri: REDIRECT_URI,
      client_id: clientId,
      code_verifier: verifier,
    }),
  });
  const text = await answer.text();
  const { access_token: token } = JSON.parse(text);
  if (typeof token !== 'string') throw new Error(`The token endpoint answered ${text}`);
  return token;
}
