// §14: what the page and the log say when the document of a client cannot be fetched.
import { describe, expect, test } from 'vitest';
import type { Network } from '../../../src/platform/outbound/public-network.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { PUBLIC, startDocumentHost } from '../../support/oauth/document-host.ts';

const ID = 'https://claude.ai/oauth/client.json';
const INSIDE = /10\.1\.2\.3|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|self-signed|EAI_|queryA/;

const host = useFresh(() => startDocumentHost({ names: ['claude.ai'] }));
let gateway: TestGateway;
const clock = manualClock(1_800_000_000_000);

/** What goes wrong, and the reason that the log has. */
interface Failure {
  readonly what: string;
  readonly reason: RegExp;
  readonly network: () => Network;
}

const FAILURES: readonly Failure[] = [
  {
    what: 'a name that is not found',
    reason: /ENOTFOUND claude\.ai/,
    network: () => ({
      ...host.network,
      resolve: () => Promise.reject(new Error('queryA ENOTFOUND claude.ai')),
    }),
  },
  {
    what: 'a name with an inner address',
    reason: /it has the address 10\.1\.2\.3/,
    network: () => ({ ...host.network, resolve: async () => ['10.1.2.3'] }),
  },
  {
    what: 'a connection that is refused',
    reason: /ECONNREFUSED 10\.1\.2\.3/,
    network: () => ({
      ...host.network,
      dial: () => Promise.reject(new Error('connect ECONNREFUSED 10.1.2.3:443')),
    }),
  },
  {
    what: 'a certificate of an unknown authority',
    reason: /self-signed certificate/,
    network: () => ({ resolve: async () => [PUBLIC], dial: host.network.dial }),
  },
  {
    what: 'a host that says nothing',
    reason: /ETIMEDOUT/,
    network: () => ({
      ...host.network,
      dial() {
        clock.advance(5000);
        return new Promise<never>(() => {});
      },
    }),
  },
];

async function authorize(hosts: string, network: Network, accept: string) {
  const env = {
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'gateway',
    CIMD_ALLOWED_HOSTS: hosts,
    OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
  };
  gateway = closeAfterTest(await startGateway({ env, deps: { clock, network } }));
  const path = `/oauth/authorize?${new URLSearchParams({ client_id: ID })}`;
  const answer = await gateway.request({ path, headers: { accept } });
  return { answer, line: gateway.log.find(({ clientId }) => clientId === ID) };
}

describe.each(FAILURES)('a document cannot be read: $what', ({ reason, network }) => {
  test('§14 document failures: the page says what happened and what an operator can do, and nothing of the inside', async () => {
    const { answer, line } = await authorize('claude.ai', network(), 'text/html');
    expect(answer.status).toBe(400);
    expect(answer.headers['content-type']).toMatch(/^text\/html/);
    for (const said of ['claude.ai', 'CIMD_ALLOWED_HOSTS', 'HTTPS_PROXY', 'port 443']) {
      expect(answer.text).toContain(said);
    }
    expect(answer.text).not.toMatch(INSIDE);
    expect(line).toMatchObject({ level: 'warn', cause: expect.stringMatching(reason) });
    expect(line?.msg).toMatch(/CIMD_ALLOWED_HOSTS/);
  });

  test('§14 document failures: a program gets the same words, in the form of OAuth', async () => {
    const { answer } = await authorize('claude.ai', network(), 'application/json');
    expect(answer.json).toEqual({
      error: 'invalid_client',
      error_description: expect.stringMatching(/CIMD_ALLOWED_HOSTS/),
    });
    expect(answer.text).not.toMatch(INSIDE);
  });

  test('§14 document failures: with CIMD_ALLOWED_HOSTS=* it is no warning', async () => {
    const { line } = await authorize('*', network(), 'text/html');
    expect(line).toMatchObject({ level: 'info', cause: expect.stringMatching(reason) });
  });
});

test('§14 document failures: what the host itself answers is its client’s to mend, and no warning', async () => {
  host.answer((res) => res.writeHead(404).end());
  const { answer, line } = await authorize('claude.ai', host.network, 'text/html');
  expect(answer.text).toContain('answered 404');
  expect(answer.text).not.toContain('CIMD_ALLOWED_HOSTS');
  expect(line?.level).toBe('info');
});

test('§14 document failures: a flood of made-up documents does not fill the log', async () => {
  host.answer((res) => res.writeHead(404).end());
  await authorize('claude.ai', host.network, 'application/json');
  const idOf = (turn: number) => `https://claude.ai/${'x'.repeat(1500)}${turn}`;
  for (let turn = 0; turn < 120; turn += 1) {
    await gateway.request({
      path: `/oauth/authorize?${new URLSearchParams({ client_id: idOf(turn) })}`,
      headers: { 'x-forwarded-for': `10.1.${turn}.1` },
    });
  }
  const loud = gateway.log.filter(
    ({ level, msg }) => level !== 'debug' && /metadata document/.test(msg),
  );
  expect(loud).toHaveLength(100);
  for (const line of loud) expect(JSON.stringify(line).length).toBeLessThan(1200);
  clock.advance(60_000);
  expect(gateway.log.find(({ leftOut }) => leftOut === 21)).toMatchObject({ level: 'info' });
});
