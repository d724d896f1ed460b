// compose.yaml, without Docker: its services as plain processes, with Redis for Valkey.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readComposeText, readServices } from '../../scripts/compose/read-compose.ts';
import { startTopology } from '../../scripts/compose/start-topology.ts';
import { callTool } from '../support/catalogs/catalog-files.ts';
import { freePort } from '../support/gateway/ports.ts';
import { checkSession, openSession } from '../support/gateway/process-http.ts';
import { logIn } from '../support/gateway/process-login.ts';
import { useShared } from '../support/lifetimes.ts';
import { ensureCommand } from '../support/tools/debian.ts';

const ROOT = new URL('../../', import.meta.url);
const topology = useShared(() => startTopology(() => freePort()));

/** How many calls of /mcp a gateway has answered with 200. */
async function countCalls(gateway: string): Promise<number> {
  const text = await (await fetch(`${topology.getUrl(gateway)}/metrics`)).text();
  const lines = text.matchAll(/^http_requests_total\{(.*)\} (\d+)$/gm);
  return [...lines]
    .filter(([, labels]) => /route="\/mcp"/.test(labels ?? '') && /"200"/.test(labels ?? ''))
    .reduce((sum, [, , count]) => sum + Number(count), 0);
}

test('§16 compose: compose.yaml is what the Compose Specification allows', async () => {
  const file = new URL('node_modules/dclint/schemas/compose.schema.json', ROOT);
  // Draft 7, by an address that ajv does not know.
  const { $schema: _, ...schema } = JSON.parse(await readFile(file, 'utf8'));
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(
    schema,
  );
  validate(parse(await readComposeText(), { merge: true }));
  expect(validate.errors ?? []).toEqual([]);
});

// Compose builds side by side, and the second build of an image of the same name fails on a fresh machine.
test('§16 compose: each image is built by one service only', async () => {
  const services = Object.entries(await readServices());
  const builders = services.filter(([, { build }]) => build !== undefined);
  expect(builders.map(([, { image }]) => image)).toEqual(['postern']);
});

test('§16 compose: HAProxy takes its configuration', async () => {
  ensureCommand('haproxy', 'haproxy');
  const file = fileURLToPath(new URL('deploy/haproxy/haproxy.cfg', ROOT));
  const { stderr } = await promisify(execFile)('haproxy', ['-c', '-f', file]);
  const complaints = stderr.split('\n').filter((line) => /^\[(WARNING|ALERT)\]/.test(line));
  // The names are those of containers.
  expect(complaints.filter((line) => !line.includes('could not resolve address'))).toEqual([]);
});

test('§16 compose: a user logs in through HAProxy, and both gateways serve the same session', async () => {
  const { accessToken } = await logIn(topology.url, 'ada');
  const session = await openSession(topology.url, accessToken);
  for (let call = 0; call < 6; call += 1) {
    expect(await checkSession(topology.url, { session, token: accessToken })).toBe(200);
  }
  expect(await countCalls('gateway-1')).toBeGreaterThan(0);
  expect(await countCalls('gateway-2')).toBeGreaterThan(0);
});

test('§10 compose: the gateways start without a warning', () => {
  for (const gateway of ['gateway-1', 'gateway-2']) {
    expect(topology.readOutput(gateway)).toContain('"Listening."');
    expect(topology.readOutput(gateway)).not.toMatch(/"level":"(warn|error)"/);
  }
});

test('§4.11 compose: HAProxy shows nobody the metrics', async () => {
  const answer = await fetch(`${topology.url}/metrics`);
  expect(answer.status).toBe(404);
  expect(await answer.text()).not.toContain('http_requests_total');
});

test('§16 compose: when one gateway is killed, the other goes on with sessions, calls and logins', async () => {
  const { accessToken } = await logIn(topology.url, 'ada');
  const session = await openSession(topology.url, accessToken);
  await topology.kill('gateway-1');
  // A request on the connection that broke is not repeated for its client: it may have been a call.
  const check = () => checkSession(topology.url, { session, token: accessToken });
  await expect.poll(() => check().catch(String)).toBe(200);
  for (let call = 0; call < 4; call += 1) {
    expect(await check()).toBe(200);
    expect(await callTool(topology.url, 'service_ping', accessToken)).toContain('pong');
  }
  const { accessToken: another } = await logIn(topology.url, 'grace');
  expect(await checkSession(topology.url, { session, token: another })).toBe(404);
});
