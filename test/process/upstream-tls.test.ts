// The built service in front of a server whose certificate a company's own authority has signed.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callTool } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
import { useFresh } from '../support/lifetimes.ts';
import { issueCertificate } from '../support/upstreams/certificates.ts';
import { sendJson, startScriptedHttp, toResult } from '../support/upstreams/scripted-http.ts';

const server = useFresh(async () => {
  const tls = await issueCertificate('127.0.0.1');
  const started = await startScriptedHttp('stateless', { tls });
  const tools = [{ name: 'search', inputSchema: { type: 'object' } }];
  started.answer('tools/list', (res, request) => sendJson(res, toResult(request, { tools })));
  started.answer('tools/call', (res, request) =>
    sendJson(res, toResult(request, { content: [{ type: 'text', text: 'found' }] })),
  );
  return { ...started, cert: tls.cert };
});
let cwd: string;

beforeEach(async () => {
  cwd = await makeFolder();
  await writeFile(join(cwd, 'authority.pem'), server.cert);
});
afterEach(endPosterns);

async function startWith(members: object, env: Readonly<Record<string, string>> = {}) {
  const mcpServers = { wiki: { url: server.url, ...members } };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers }));
  return startPostern(
    { AUTH_REQUIRED: 'false', ...env },
    { args: ['start', '--config', 'mcp.json'], cwd },
  );
}

test('§18.3 TLS: an authority in NODE_EXTRA_CA_CERTS is trusted', async () => {
  const { url } = await startWith({}, { NODE_EXTRA_CA_CERTS: join(cwd, 'authority.pem') });
  expect(await callTool(url, 'wiki__search')).toBe('found');
});

test('§18.3 TLS: an authority in "ca", beside the configuration file, is trusted', async () => {
  const { url } = await startWith({ ca: 'authority.pem' });
  expect(await callTool(url, 'wiki__search')).toBe('found');
});

test('§18.4 TLS: an authority that nobody trusts is refused, the log says so, and nothing is sent', async () => {
  const postern = await startWith({});
  expect(await callTool(postern.url, 'wiki__search')).not.toBe('found');
  expect(postern.log()).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      server: 'wiki',
      msg: expect.stringContaining('its certificate is refused (DEPTH_ZERO_SELF_SIGNED_CERT)'),
    }),
  );
  expect(server.received).toEqual([]);
});
