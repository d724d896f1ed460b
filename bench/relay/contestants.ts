// Who passes calls on in the table of npm run bench -- relay: the floors, Postern, and others that npm and Debian have.
import { execFileSync, spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Command,
  type Contestant,
  runContestant,
  runPostern,
  type Surroundings,
} from '../contestants.ts';
import { LOAD_CORE, type ServerProcess } from '../server-process.ts';
import type { Testbed } from '../testbed.ts';
import { nameInFile } from './upstreams.ts';
import { ERAS, findEra, LIST, type Size, TOOLS, WAYS, type Way } from './ways.ts';

/** The least that passes on: what the others are compared with. Over HTTP it verifies each token's signature. */
export const FLOOR = 'floor';

type RelayContestant = Omit<Contestant, 'era'> & {
  readonly ways: readonly Way[];
  /** What it is measured with, if not with everything. */
  readonly only?: Size;
  /** Of the configuration file. */
  readonly rules?: readonly object[];
};

const CONTESTANTS: readonly RelayContestant[] = [
  {
    name: FLOOR,
    label: 'floor: token, undici',
    ways: ERAS,
    command: runContestant('relay-floor.mjs'),
    isQuick: true,
  },
  {
    name: 'floor-remembering',
    label: 'floor, signatures remembered',
    ways: ERAS,
    command: runContestant('relay-floor.mjs', { REMEMBER: 'true' }),
    isQuick: false,
  },
  {
    name: FLOOR,
    label: 'floor: JSON parsed and written, no token',
    ways: ['stdio'],
    command: runStdioFloor,
    isQuick: true,
  },
  {
    name: 'embedded',
    label: 'Postern, embedded',
    ways: WAYS,
    command: runPostern('embedded'),
    isQuick: true,
  },
  {
    name: 'embedded-rules',
    label: 'Postern, embedded, 20 rules',
    ways: ['session'],
    command: runPostern('embedded'),
    rules: listRules(20),
    only: LIST,
    isQuick: true,
  },
  {
    name: 'embedded-verified',
    label: 'Postern, embedded, each signature verified',
    ways: ERAS,
    command: runPostern('embedded', { TOKEN_SIGNATURE_MEMORY: '0' }),
    isQuick: false,
  },
  {
    name: 'redis',
    label: 'Postern, Redis',
    ways: WAYS,
    command: runPostern('redis'),
    isQuick: true,
  },
  {
    name: 'haproxy',
    label: 'haproxy, token',
    ways: ERAS,
    command: runHaproxy,
    isQuick: false,
  },
  {
    name: 'fastmcp',
    label: 'fastmcp, token, official client',
    ways: ['session'],
    command: runContestant('fastmcp-relay.mjs'),
    isQuick: false,
    needsInstall: true,
  },
  {
    name: 'mcp-proxy',
    label: 'mcp-proxy, no token',
    ways: ['stdio'],
    command: runMcpProxy,
    isQuick: false,
    needsInstall: true,
  },
];

/** Those that pass calls on in this way. */
export const listContestants = (way: Way): readonly (Contestant & RelayContestant)[] =>
  CONTESTANTS.filter(({ ways }) => ways.includes(way)).map((one) => ({
    ...one,
    era: findEra(way),
  }));

/** All but the last are about other groups than the caller's. */
function listRules(count: number): readonly object[] {
  const others = Array.from({ length: count - 1 }, (_, n) => ({
    who: { groups: [`group-${n}`] },
    ...(n % 2 === 0 && { when: "user.email.endsWith('@example.com')" }),
    may: [`tool_${n}*`],
  }));
  return [...others, { who: 'everyone', may: ['*'] }];
}

/** A server behind the gateway that is a process: the child of the contestant, whose CPU does not count. */
const STDIO_SERVER = {
  command: 'taskset',
  args: ['-c', LOAD_CORE, process.execPath, 'bench/contestants/stdio-upstream.mjs'],
  env: { TOOLS: String(TOOLS), ERA: 'session' },
};

function runStdioFloor({ port }: Surroundings): ReturnType<Command> {
  const { command, args, env } = STDIO_SERVER;
  return {
    args: ['bench/contestants/stdio-floor.mjs', command, ...args],
    env: { ...env, PORT: String(port) },
    ownCpuOnly: true,
  };
}

function runMcpProxy({ port }: Surroundings): ReturnType<Command> {
  const { command, args, env } = STDIO_SERVER;
  return {
    args: [
      'bench/contestants/node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs',
      ...['--host', '127.0.0.1', '--port', String(port), '--server', 'stream', '--no-eventStore'],
      ...['--', command, ...args],
    ],
    env,
    ownCpuOnly: true,
  };
}

function runHaproxy({ port, issuer, audience, dataDir }: Surroundings): ReturnType<Command> {
  return {
    program: 'haproxy',
    args: ['-db', '-q', '-f', join(dataDir, 'haproxy.cfg')],
    env: { HAPROXY_DIR: dataDir, PORT: String(port), ISSUER: issuer, AUDIENCE: audience },
  };
}

/** Passes on to the server at this URL; undefined: to STDIO_SERVER. */
export async function startContestant(
  testbed: Testbed,
  { name, command, rules }: Contestant & RelayContestant,
  upstreamUrl: string | undefined,
  nodeOptions: readonly string[] = [],
): Promise<ServerProcess> {
  const bare = upstreamUrl === undefined ? STDIO_SERVER : { url: upstreamUrl };
  const args = await nameInFile(testbed.folder, name, { bare: { ...bare, prefix: '' } }, { rules });
  const complete: Command = (surroundings) => {
    const { args: given, env, ...rest } = command(surroundings);
    const isPostern = given.includes('start');
    return {
      ...rest,
      args: isPostern ? [...given, ...args] : given,
      env: { ...env, ...(!isPostern && { UPSTREAM_URL: upstreamUrl ?? '' }) },
      ...(upstreamUrl === undefined && { ownCpuOnly: true }),
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
