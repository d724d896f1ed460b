// What servers behind the gateway learn of a client that logs in as itself.
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { fileOf, getToken, withSecret } from '../../support/oauth/machine-clients.ts';
import { BASE, startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { buildTool, startListingServer } from '../../support/upstreams/listing-server.ts';
import { startRecorder } from '../../support/upstreams/recorder.ts';

const world = useFresh(async () => {
  const wiki = await startListingServer({ tools: [buildTool('search')] });
  const recorder = await startRecorder(wiki.url);
  return {
    recorder,
    async close() {
      await recorder.close();
      await wiki.close();
    },
  };
});

/** The answer to a call of the server's tool, and what reached the server. */
async function callServer(auth: object) {
  const file = await fileOf([withSecret('ci', { groups: ['robots'] })], {
    mcpServers: { wiki: { url: world.recorder.url, auth } },
  });
  const own = closeAfterTest(await startOwnTokens({ deps: { file } }));
  const token = await getToken(own.gateway, 'ci');
  const opened = await own.call(token);
  const { json } = await own.gateway.rpc(
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wiki__search', arguments: {} },
    },
    { token, session: String(opened.headers['mcp-session-id']) },
  );
  const received = world.recorder.received.filter(({ body }) => body.includes('tools/call'));
  expect(JSON.stringify(world.recorder.received)).not.toContain(token);
  return { json, received, provider: own.provider };
}

test('§18.6, §5.11 machine clients: "identity" tells the server the client, and that no provider knows it', async () => {
  const { json, received } = await callServer({ type: 'identity' });
  expect(json.result.isError).not.toBe(true);
  const [, token = ''] = String(received[0]?.headers.authorization).split(' ');
  expect(decodeJwt(token)).toMatchObject({
    iss: BASE,
    sub: 'client:ci',
    client: 'ci',
    groups: ['robots'],
    idp: BASE,
  });
});

test.each([
  { type: 'forward', audience: 'https://wiki.example' },
  { type: 'token-exchange', audience: 'https://wiki.example' },
])('§18.6, §5.11 machine clients: $type has no token for one, and says so', async (auth) => {
  const { json, received } = await callServer(auth);
  expect(JSON.stringify(json)).toMatch(/a client that logs in as itself has none/);
  expect(received).toEqual([]);
});
