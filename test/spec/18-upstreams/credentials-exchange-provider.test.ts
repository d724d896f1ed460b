// §18.6: token exchange with a real provider, and a server that checks what it is sent.
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { expect, test } from 'vitest';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { BASE_URL, startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { startExchangeProvider } from '../../support/oauth/exchange-provider.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import {
  type ScriptedRequest,
  sendJson,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const GATEWAY = `${BASE_URL}/mcp`;
const WIKI = 'https://wiki.example';

const provider = useFresh(() => startExchangeProvider(GATEWAY, WIKI));

/** A tool that says whose token it got; without a valid one there is none, and 401. */
const wiki = useFresh(async () => {
  const server = await startScriptedHttp('stateless');
  const keys = createRemoteJWKSet(new URL(provider.jwksUrl));
  const verify = ({ headers }: ScriptedRequest) =>
    jwtVerify(headers.authorization?.replace('Bearer ', '') ?? '', keys, {
      issuer: provider.issuer,
      audience: WIKI,
    });
  const answer = (method: string, toValue: (sub: string, scope: string) => object) =>
    server.answer(method, (res, request) => {
      verify(request).then(
        ({ payload }) =>
          sendJson(
            res,
            toResult(request, { ...toValue(String(payload.sub), String(payload.scope)) }),
          ),
        () => res.writeHead(401).end(),
      );
    });
  answer('tools/list', () => ({ tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] }));
  answer('tools/call', (sub, scope) => ({ content: [{ type: 'text', text: `${sub}: ${scope}` }] }));
  return server;
});

async function startWith(audience: string) {
  const auth = { type: 'token-exchange', audience, scope: 'wiki.read' };
  const file = await readFile({ mcpServers: { wiki: { url: wiki.url, auth } } });
  const gateway = closeAfterTest(await startGateway({ deps: { file }, env: provider.env }));
  const { message, headers } = statelessRequest('tools/call', { name: 'wiki__whoami' });
  return async (token: string) => (await gateway.rpc(message, { token, headers })).json;
}

test('§18.6 token-exchange: a real provider makes each user a token that the server can check', async () => {
  const call = await startWith(WIKI);
  const ada = await provider.issueToken('ada', GATEWAY);
  const bob = await provider.issueToken('bob', GATEWAY);
  const texts = [];
  for (const token of [ada, bob, ada]) texts.push((await call(token)).result.content[0].text);
  expect(texts).toEqual(['ada: wiki.read', 'bob: wiki.read', 'ada: wiki.read']);
  expect(provider.exchanged()).toBe(2);
  const sent = wiki.received.flatMap(({ headers }) => headers.authorization ?? []);
  expect(sent.some((one) => [ada, bob].some((token) => one.includes(token)))).toBe(false);
  for (const one of sent) {
    expect(decodeJwt(one.replace('Bearer ', ''))).toMatchObject({
      aud: WIKI,
      client_id: 'gateway',
    });
  }
});

test('§18.6 token-exchange: an audience that a real provider refuses is an error that says so', async () => {
  const call = await startWith('https://elsewhere.example');
  // What the server has nobody could ask it, so the call has no result of a tool.
  expect(await call(await provider.issueToken('ada', GATEWAY))).toMatchObject({
    error: {
      code: -32603,
      message: expect.stringContaining('the identity provider gives this login no access'),
    },
  });
  expect(wiki.count('tools/call')).toBe(0);
});
