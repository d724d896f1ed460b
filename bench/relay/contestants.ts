// Who passes calls on in the table of npm run bench -- relay: the floors, Postern, and others that npm and Debian have.
import { execFileSync, spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, type Contestant, runContestant, runPostern } from '../contestants.ts';
import { LOAD_CORE, type ServerProcess } from '../server-process.ts';
import type { Testbed } from '../testbed.ts';
import { nameInFile } from './upstreams.ts';

/** How many tools the server behind them lists. */
export const TOOLS = 300;

/** The least that passes on and verifies each token's signature: what the others are compared with. */
export const FLOOR = 'floor';

export function listContestants(): readonly Contestant[] {
  const contestant = (
    name: string,
    label: string,
    command: Command,
    more: Partial<Contestant> = {},
  ): Contestant => ({ name, label, era: 'session', command, isQuick: true, ...more });
  return [
    contestant(FLOOR, 'floor: token, undici', runContestant('relay-floor.mjs')),
    contestant(
      'floor-remembering',
      'floor, signatures remembered',
      runContestant('relay-floor.mjs', { REMEMBER: 'true' }),
    ),
    contestant('embedded', 'Postern, embedded', runPostern('embedded')),
    contestant(
      'embedded-verified',
      'Postern, embedded, each signature verified',
      runPostern('embedded', { TOKEN_SIGNATURE_MEMORY: '0' }),
    ),
    contestant('redis', 'Postern, Redis', runPostern('redis')),
    contestant('haproxy', 'haproxy, token', runHaproxy, { isQuick: false }),
    contestant('fastmcp', 'fastmcp, token, official client', runContestant('fastmcp-relay.mjs'), {
      isQuick: false,
      needsInstall: true,
    }),
    contestant('mcp-proxy', 'mcp-proxy, no token, stdio', runMcpProxy, {
      isQuick: false,
      needsInstall: true,
    }),
  ];
}

/** It has a child, the server itself, whose CPU is not its own. */
const runMcpProxy: Command = ({ port }) => ({
  args: [
    'bench/contestants/node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs',
    ...['--host', '127.0.0.1', '--port', String(port), '--server', 'stream', '--no-eventStore'],
    ...['--', 'taskset', '-c', LOAD_CORE, process.execPath, 'bench/contestants/stdio-upstream.mjs'],
  ],
  env: { TOOLS: String(TOOLS), ERA: 'session' },
  ownCpuOnly: true,
});

const runHaproxy: Command = ({ port, issuer, audience, dataDir }) => ({
  program: 'haproxy',
  args: ['-db', '-q', '-f', join(dataDir, 'haproxy.cfg')],
  env: { HAPROXY_DIR: dataDir, PORT: String(port), ISSUER: issuer, AUDIENCE: audience },
});

/** Passes on to the server at this URL. */
export async function startContestant(
  testbed: Testbed,
  { command }: Contestant,
  upstreamUrl: string,
  nodeOptions: readonly string[] = [],
): Promise<ServerProcess> {
  const args = await nameInFile(testbed.folder, 'relay', {
    bare: { url: upstreamUrl, prefix: '' },
  });
  const complete: Command = (surroundings) => {
    const { args: given, env, ...rest } = command(surroundings);
    const isPostern = given.includes('start');
    return {
      ...rest,
      args: isPostern ? [...given, ...args] : given,
      env: { ...env, ...(!isPostern && { UPSTREAM_URL: upstreamUrl }) },
    };
  };
  return testbed.start(complete, { prepare: prepareHaproxy, nodeOptions });
}

/** Its configuration, and the provider's key as it wants it. */
async function prepareHaproxy(env: Readonly<Record<string, string>>): Promise<void> {
  const { HAPROXY_DIR: folder, PORT, ISSUER, AUDIENCE, UPSTREAM_URL } = env;
  if (folder === undefined || UPSTREAM_URL === undefined) return;
  const { keys } = JSON.parse(await (await fetch(`${ISSUER}/jwks`)).text());
  const pem = createPublicKey({ key: keys[0], format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  });
  const key = join(folder, 'key.pem');
  writeFileSync(key, pem);
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `global
  nbthread 1
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend callers
  bind 127.0.0.1:${PORT}
  http-request return status 200 if { path /health }
  http-request set-var(txn.bearer) http_auth_bearer
  http-request set-var(txn.now) date()
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_header_query('$.alg') -m str RS256 }
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_payload_query('$.iss') -m str ${ISSUER} }
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_payload_query('$.aud') -m str ${AUDIENCE} }
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_payload_query('$.exp','int'),sub(txn.now) -m int gt 0 }
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_verify(RS256,"${key}") -m int 1 }
  default_backend server
backend server
  server one ${new URL(UPSTREAM_URL).host}
`,
  );
}

export function ensureHaproxy(): void {
  if (spawnSync('haproxy', ['-v']).error === undefined) return;
  if (process.getuid?.() !== 0) throw new Error('haproxy is missing: apt-get install haproxy');
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', 'haproxy'], { stdio: 'ignore' });
}
