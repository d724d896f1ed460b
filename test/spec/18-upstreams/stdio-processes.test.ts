// §18.3: the processes of a server: their environment, what they write, and their end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import {
  advanceUntil,
  callTool,
  isAlive,
  scripted,
  supportFile,
  toCall,
  useStdio,
} from '../../support/upstreams/stdio.ts';

/** A child of a server: says when it is there, and stays. */
const STAYS = "process.stdout.write('here'); setInterval(() => {}, 1000);";
const STAYS_IN_SPITE = `process.on('SIGTERM', () => {}); ${STAYS}`;

test('§18.3 stdio: a server finds a few variables of the gateway and its own, and nothing else', async () => {
  const stdio = useStdio(
    { ...scripted(), env: { TOKEN: 'of the server', LANG: 'C' } },
    {
      environment: {
        PATH: process.env.PATH,
        HOME: '/home/of-gateway',
        USER: 'gateway',
        LANG: 'en_US.UTF-8',
        TMPDIR: '/tmp',
        SSL_CERT_FILE: '/etc/ca.pem',
        NODE_EXTRA_CA_CERTS: '/etc/extra.pem',
        REQUESTS_CA_BUNDLE: '',
        OIDC_CLIENT_SECRET: 'of the gateway',
        NODE_OPTIONS: '--no-warnings',
      },
    },
  );
  expect(JSON.parse(await callTool(stdio, 'env'))).toEqual({
    PATH: process.env.PATH,
    HOME: '/home/of-gateway',
    USER: 'gateway',
    TMPDIR: '/tmp',
    SSL_CERT_FILE: '/etc/ca.pem',
    NODE_EXTRA_CA_CERTS: '/etc/extra.pem',
    LANG: 'C',
    TOKEN: 'of the server',
  });
});

const PROXIES = {
  HTTPS_PROXY: 'http://user:p%40ss@proxy.example:3128',
  // Not read by the gateway, which has the other spelling: no valid URL.
  https_proxy: 'user:p@ss@proxy.example:3128',
  HTTP_PROXY: 'http://proxy.example:3128',
  NO_PROXY: 'localhost,.internal.example',
};

const EXEMPT = `${PROXIES.NO_PROXY},localhost,127.0.0.1,::1`;
/** This machine is never reached by a proxy. */
const FOUND = { ...PROXIES, NO_PROXY: EXEMPT, no_proxy: EXEMPT };

test.each<{ proxyEnvironment: boolean | undefined; env?: Record<string, string>; found: object }>([
  {
    proxyEnvironment: undefined,
    found: {
      ...FOUND,
      HTTPS_PROXY: 'http://proxy.example:3128',
      https_proxy: 'proxy.example:3128',
    },
  },
  { proxyEnvironment: true, found: FOUND },
  {
    proxyEnvironment: true,
    env: { NO_PROXY: 'own.example' },
    found: { ...PROXIES, NO_PROXY: 'own.example' },
  },
  { proxyEnvironment: false, found: {} },
  {
    proxyEnvironment: true,
    env: { https_proxy: 'http://own.example:1' },
    found: {
      https_proxy: 'http://own.example:1',
      HTTP_PROXY: PROXIES.HTTP_PROXY,
      NO_PROXY: EXEMPT,
      no_proxy: EXEMPT,
    },
  },
])(
  '§18.3 stdio: with "proxyEnvironment": $proxyEnvironment and env $env, a server finds its proxies',
  async ({ proxyEnvironment, env = {}, found }) => {
    const stdio = useStdio({ ...scripted(), proxyEnvironment, env }, { environment: PROXIES });
    expect(JSON.parse(await callTool(stdio, 'env'))).toEqual(found);
  },
);

test('§18.3 stdio: the log names the proxies whose user name and password a server does not get', () => {
  const { lines } = useStdio(scripted(), { environment: PROXIES });
  expect(lines.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(
      /files gets HTTPS_PROXY, https_proxy without user name and password\..* "proxyEnvironment": true/,
    ),
  );
});

test('§18.3 stdio: no line that is logged has the password of a proxy', async () => {
  const environment = { HTTPS_PROXY: 'http://user:pass%40word@proxy.example:3128' };
  const stdio = useStdio({ ...scripted(), proxyEnvironment: true }, { environment });
  const written = [environment.HTTPS_PROXY, 'pass@word was refused'];
  await callTool(stdio, 'stderr', { lines: written });
  const told = () => stdio.lines.map(({ msg }) => msg).filter((msg) => msg.startsWith('files: '));
  await expect
    .poll(told)
    .toEqual(['files: http://proxy.example:3128', 'files: [secret] was refused']);
});

test('§18.3 stdio: a command runs in "cwd", and no shell reads its arguments', async () => {
  const args = ['-e', 'console.error(process.cwd(), process.argv[1])', '$HOME; echo *'];
  const { lines } = useStdio({ args, cwd: '/usr' }, { clock: manualClock() });
  await expect.poll(() => lines.map(({ msg }) => msg)).toContain('files: /usr $HOME; echo *');
});

test('§18.3 stdio: the error output is logged line by line, shortened, harmless and without secrets', async () => {
  const stdio = useStdio({
    ...scripted(),
    env: { TOKEN: 'secret-token', KEY: '-----BEGIN\nkey-material\n-----END', DEBUG: 'yes' },
  });
  const written = [
    'ready, yes',
    '\u001b[31mred\u001b[0m \u0007 \u009b2J \u202etxt\r',
    'with secret-token and key-material',
    'x'.repeat(10_000),
    '',
    'last',
  ];
  await callTool(stdio, 'stderr', { lines: written });
  const ofServer = () => stdio.lines.filter(({ msg }) => msg.startsWith('files: '));
  await expect.poll(() => ofServer().at(-1)?.msg).toBe('files: last');
  expect(ofServer().map(({ level, msg }) => [level, msg])).toEqual([
    ['info', 'files: ready, yes'],
    ['info', 'files: red     txt'],
    ['info', 'files: with [secret] and [secret]'],
    ['info', `files: ${'x'.repeat(1000)}…`],
    ['info', 'files: last'],
  ]);
});

test('§18.3 stdio: secrets of its arguments are not in the log either', async () => {
  const args = [
    '-e',
    'console.error(process.argv.slice(1).join(" | "))',
    '--',
    'all',
    'hunter2-secret',
  ];
  const { lines } = useStdio(
    { args, secretArguments: ['hunter2-secret'] },
    { clock: manualClock() },
  );
  await expect.poll(() => lines.map(({ msg }) => msg)).toContain('files: all | [secret]');
});

test('§18.3 stdio: when a process ends, the warning has the last ten lines of its error output', async () => {
  const lines = Array.from({ length: 12 }, (_, at) => `line ${at} with secret-token`).join('\n');
  const stdio = useStdio(
    {
      args: ['-e', `process.stderr.write(${JSON.stringify(lines)} + '\\n'); process.exitCode = 3`],
      env: { TOKEN: 'secret-token' },
    },
    { clock: manualClock() },
  );
  const findWarning = () => stdio.lines.find(({ level }) => level === 'warn');
  await expect.poll(findWarning, { timeout: 20_000 }).toMatchObject({
    msg: expect.stringContaining('its process ended with exit code 3'),
    errorOutput: Array.from({ length: 10 }, (_, at) => `line ${at + 2} with [secret]`),
  });
  // Clients may see the reason: nothing of it there.
  expect(stdio.states.flat().join()).not.toContain('line');
});

test('§18.3 stdio: of the error output 100 lines a minute are logged, the others counted', async () => {
  const clock = manualClock();
  const stdio = useStdio(scripted(), { clock });
  await callTool(stdio, 'stderr', { lines: Array.from({ length: 250 }, (_, at) => `line ${at}`) });
  const read = () => stdio.lines.filter(({ msg }) => msg.startsWith('files: line'));
  await expect.poll(read).toHaveLength(100);
  // All that it wrote before has come when the answer to this has.
  await callTool(stdio, 'stderr', { lines: ['end'] });
  await callTool(stdio, 'echo', { value: '' });
  clock.advance(60_000);
  const leftOut = stdio.lines.find(({ msg }) => msg.includes('were left out'));
  expect(leftOut).toMatchObject({ level: 'warn', server: 'files' });
});

test('§18.3 stdio: what a server started ends with it', async () => {
  const stdio = useStdio();
  const child = Number(await callTool(stdio, 'fork', { script: STAYS }));
  const pid = Number(await callTool(stdio, 'pid'));
  expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
  await stdio.upstream.close(0);
  expect([isAlive(pid), isAlive(child)]).toEqual([false, false]);
});

test('§18.3 stdio: what a killed server started ends with it', async () => {
  const stdio = useStdio();
  const child = Number(await callTool(stdio, 'fork', { script: STAYS }));
  process.kill(Number(await callTool(stdio, 'pid')), 'SIGKILL');
  await expect.poll(() => isAlive(child)).toBe(false);
});

test('§18.3 stdio: what does not end by SIGTERM is ended by SIGKILL after 2 s', async () => {
  const clock = manualClock();
  const stdio = useStdio(scripted('stays'), { clock });
  const child = Number(await callTool(stdio, 'fork', { script: STAYS_IN_SPITE }));
  const pid = Number(await callTool(stdio, 'pid'));
  const closed = stdio.upstream.close(0);
  await callToolIgnored(stdio);
  clock.advance(500);
  clock.advance(1999);
  expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
  clock.advance(1);
  await expect.poll(() => isAlive(pid)).toBe(false);
  // One kill is for the whole group.
  await expect.poll(() => isAlive(child)).toBe(false);
  await advanceUntil(clock, closed);
  expect(stdio.counts.at(-1)).toBe(0);
});

/** Once a server is closed it takes no calls. */
async function callToolIgnored({ upstream }: ReturnType<typeof useStdio>): Promise<void> {
  await expect(upstream.request(GATEWAY_CALLER, toCall('pid'))).rejects.toMatchObject({
    failure: 'unavailable',
  });
}

test('§18.3 stdio: calls under way end before their process does', async () => {
  const stdio = useStdio();
  const answer = callTool(stdio, 'soon', { ms: 200 });
  await callTool(stdio, 'echo', { value: '' });
  const closed = stdio.upstream.close(20_000);
  await callToolIgnored(stdio);
  expect(await answer).toBe('done');
  await closed;
  expect(stdio.counts).toEqual([1, 0]);
});

test('§18.3 stdio: a gateway that is killed leaves no server that ends with its input', async () => {
  const gateway = spawn(process.execPath, ['--import', 'tsx', supportFile('stdio-gateway.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line]: unknown[] = await once(gateway.stdout, 'data');
  const pid = Number(String(line));
  expect(isAlive(pid)).toBe(true);
  gateway.kill('SIGKILL');
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test('§18.3 stdio: a gateway that ends without closing takes its servers with it', async () => {
  const gateway = spawn(
    process.execPath,
    ['--import', 'tsx', supportFile('stdio-gateway.ts'), 'stays'],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const [line]: unknown[] = await once(gateway.stdout, 'data');
  const pid = Number(String(line));
  expect(isAlive(pid)).toBe(true);
  // It calls process.exit then.
  gateway.stdin.end();
  await once(gateway, 'exit');
  await expect.poll(() => isAlive(pid)).toBe(false);
});
