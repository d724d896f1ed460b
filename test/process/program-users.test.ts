// §18.3: programs that run as another user of the system than the gateway, on Linux. What starts them needs root; for any
// other user the tests expect to be told so.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { runCommandAs } from '../../src/servers/stdio/child.ts';
import { runDoctor } from '../support/gateway/doctor.ts';
import {
  type Env,
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { openSession, rpc } from '../support/gateway/process-http.ts';
import { readRefusal } from '../support/gateway/refused-start.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { isAlive, supportFile } from '../support/upstreams/stdio.ts';

const IS_ROOT = process.getuid?.() === 0;
const OPEN = { AUTH_REQUIRED: 'false', OAUTH_CONSENT: 'off' } as const;
const OTHER = 4321;
const NOBODY = 65_534;
const LONG = { timeout: 120_000 } as const;

afterEach(endPosterns);

interface Place {
  readonly folder: string;
  readonly config: string;
  /** A Node.js and a server that every user can read, wherever this checkout is. */
  readonly program: { readonly command: string; readonly args: readonly string[] };
}

async function makePlace(servers: Readonly<Record<string, object>>): Promise<Place> {
  const folder = await makeFolder();
  await chmod(folder, 0o755);
  const command = join(folder, 'node');
  const script = join(folder, 'spy.mjs');
  await copyFile(process.execPath, command);
  await copyFile(supportFile('spying-server.mjs'), script);
  await chmod(command, 0o755);
  await chmod(script, 0o644);
  const program = { command, args: [script] };
  const config = join(folder, 'mcp.json');
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [name, { ...program, ...server }]),
  );
  await writeFile(config, JSON.stringify({ mcpServers, builtIn: false }, null, 2), { mode: 0o600 });
  return { folder, config, program };
}

const startAt = ({ folder, config }: Place, env: Env = {}): Promise<RunningPostern> =>
  startPostern(
    { ...OPEN, DATA_DIR: join(folder, 'data'), HOME: '/of-the-gateway', ...env },
    { args: ['start', '--config', config] },
  );

/** What is wrong with a configuration file of these servers, by the start that refuses it. */
async function refuse(servers: Readonly<Record<string, object>>, env: Env = {}): Promise<string> {
  const config = join(await makeFolder(), 'mcp.json');
  await writeFile(config, JSON.stringify({ mcpServers: servers, builtIn: false }, null, 2));
  return (await readRefusal({ ...OPEN, POSTERN_CONFIG: config, ...env })).join('\n');
}

const SPY = { command: 'node', args: ['spy.mjs'] };

async function call(
  { url }: RunningPostern,
  session: string,
  name: string,
  args: object = {},
): Promise<ReturnType<typeof JSON.parse>> {
  const params = { name, arguments: args };
  const answer = await rpc(
    url,
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    { session },
  );
  const { result } = JSON.parse(await answer.text());
  expect(result?.isError, JSON.stringify(result)).not.toBe(true);
  return JSON.parse(result.content[0].text);
}

const NO_RIGHTS = {
  Groups: '',
  CapInh: '0000000000000000',
  CapPrm: '0000000000000000',
  CapEff: '0000000000000000',
  CapAmb: '0000000000000000',
  NoNewPrivs: '1',
};
const four = (id: number) => Array.from({ length: 4 }, () => id).join(' ');

describe.runIf(IS_ROOT)('as root', () => {
  test(
    '§18.3 users: a program reads nothing of the gateway or of another program, and cannot end them',
    LONG,
    async () => {
      const place = await makePlace({
        first: { runAs: `${OTHER}:${OTHER}`, env: { KEY: 'of the first' }, isolation: 'session' },
        second: {},
      });
      const secrets = join(place.folder, '.env');
      await writeFile(secrets, 'OAUTH_CLIENT_SECRET=x', { mode: 0o600 });
      const audit = join(place.folder, 'audit.log');
      const gateway = await startAt(place, {
        RUN_PROGRAMS_AS: 'nobody',
        AUDIT_LOG: `file:${audit}`,
      });
      const session = await openSession(gateway.url);
      const tool = (name: string, args?: object) => call(gateway, session, name, args);

      expect(await tool('first__status')).toEqual({
        ...NO_RIGHTS,
        Uid: four(OTHER),
        Gid: four(OTHER),
      });
      expect(await tool('second__status')).toMatchObject({ ...NO_RIGHTS, Uid: four(NOBODY) });
      // The gateway is the parent: setpriv has become the program.
      expect(await tool('first__parent')).toBe(gateway.pid);

      const first = await tool('first__pid');
      const data = join(place.folder, 'data');
      const paths = [
        ...['environ', 'maps', 'fd/0', 'root/etc/shadow', 'cwd/x'].map(
          (name) => `/proc/${gateway.pid}/${name}`,
        ),
        ...[place.config, secrets, audit, data, join(data, 'oauth-state-secret')],
        ...[`/proc/${first}/environ`, '/proc/self/environ'],
      ];
      const results = await tool('second__read', { paths });
      expect(results.slice(0, -1)).toEqual(paths.slice(0, -1).map(() => 'EACCES'));
      expect(results.at(-1)).toBeGreaterThan(0);
      for (const pid of [gateway.pid, first]) {
        expect(await tool('second__memory', { pid })).toBe('EACCES');
        for (const signal of ['SIGTERM', 'SIGKILL', 'SIGSTOP'])
          expect(await tool('second__kill', { pid, signal })).toBe('EPERM');
      }
      expect(await tool('second__becomeRoot')).toBe('EPERM');
    },
  );

  test('§18.3 users: a program finds no file of the gateway open, such as its store', async () => {
    const place = await makePlace({ other: { runAs: `${OTHER}:${OTHER}` }, own: {} });
    const gateway = await startAt(place);
    const session = await openSession(gateway.url);
    for (const name of ['other__files', 'own__files']) {
      const files: readonly string[] = await call(gateway, session, name);
      expect(files.filter((file) => file.startsWith(place.folder))).toEqual([]);
    }
  });

  test('§18.3 users: HOME and USER are those of the user; without an entry HOME is the gateway’s', async () => {
    const place = await makePlace({
      entry: { runAs: 'nobody' },
      numbers: { runAs: `${OTHER}:${OTHER}` },
      own: { runAs: 'nobody', env: { HOME: '/srv' }, cwd: '/usr' },
    });
    const gateway = await startAt(place, { USER: 'gateway' });
    const session = await openSession(gateway.url);
    const home = execFileSync('getent', ['passwd', 'nobody'], { encoding: 'utf8' }).split(':')[5];
    expect(await call(gateway, session, 'entry__env')).toMatchObject({
      HOME: home,
      USER: 'nobody',
    });
    const numbers = await call(gateway, session, 'numbers__env');
    expect([numbers.HOME, numbers.USER]).toEqual(['/of-the-gateway', undefined]);
    expect(await call(gateway, session, 'own__env')).toMatchObject({ HOME: '/srv' });
    expect(await call(gateway, session, 'own__cwd')).toBe('/usr');
  });

  test(
    '§18.3 users: a program that ends is started again as its user, and ends with all that it started',
    LONG,
    async () => {
      const place = await makePlace({ spy: { runAs: `${OTHER}:${OTHER}` } });
      const gateway = await startAt(place);
      const session = await openSession(gateway.url);
      const before = await call(gateway, session, 'spy__pid');
      process.kill(before, 'SIGKILL');
      await expect.poll(() => isAlive(before)).toBe(false);
      await expect
        .poll(() => call(gateway, session, 'spy__pid').catch(() => before), { timeout: 20_000 })
        .not.toBe(before);
      const pid = await call(gateway, session, 'spy__pid');
      expect(await call(gateway, session, 'spy__status')).toMatchObject({ Uid: four(OTHER) });
      const child = await call(gateway, session, 'spy__fork');
      expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
      gateway.kill('SIGTERM');
      await gateway.ended;
      await expect.poll(() => [isAlive(pid), isAlive(child)]).toEqual([false, false]);
    },
  );

  test('§18.3 users: of a gateway with capabilities and without root, a program inherits none', async () => {
    // As systemd starts it with User= and AmbientCapabilities=.
    const caps = '+kill,+setgid,+setuid';
    const { command, args } = runCommandAs(
      { uid: OTHER, gid: OTHER, name: undefined, home: undefined },
      { command: 'cat', args: ['/proc/self/status'] },
    );
    const gateway = ['--reuid=4320', '--regid=4320', '--clear-groups', `--inh-caps=-all,${caps}`];
    const bounds = [`--ambient-caps=-all,${caps}`, `--bounding-set=-all,${caps}`, '--no-new-privs'];
    const run = (rest: readonly string[]) =>
      execFileSync('setpriv', [...gateway, ...bounds, '--', ...rest], {
        encoding: 'utf8',
        cwd: '/',
      });
    expect(run(['cat', '/proc/self/status'])).toMatch(/^CapEff:\t00000000000000e0$/m);
    const status = run([command, ...args]);
    expect(status).toMatch(/^Uid:\t4321\t4321\t4321\t4321$/m);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
      expect(status).toMatch(new RegExp(`^${set}:\\t0{16}$`, 'm'));
  });

  test('§18.3 users: a command that is missing is told by setpriv', async () => {
    const place = await makePlace({
      spy: { runAs: `${OTHER}:${OTHER}`, command: 'no-such-program' },
    });
    const gateway = await startAt(place);
    const findWarning = () => gateway.log().find(({ level }) => level === 'warn');
    await expect.poll(findWarning, { timeout: 20_000 }).toMatchObject({
      msg: expect.stringContaining('exit code 127'),
      errorOutput: [expect.stringMatching(/^setpriv: .*no-such-program/)],
    });
    expect(JSON.stringify(findWarning())).toContain(
      'it says why no-such-program could not be started as the user 4321.',
    );
  });

  test('§18.3 users: a change of the file to a user that cannot be is not loaded', async () => {
    const place = await makePlace({ spy: { runAs: `${OTHER}:${OTHER}` } });
    const gateway = await startAt(place);
    const session = await openSession(gateway.url);
    const server = { ...place.program, runAs: 'root' };
    await writeFile(place.config, JSON.stringify({ mcpServers: { spy: server }, builtIn: false }));
    await expect
      .poll(() => gateway.log().find(({ level }) => level === 'error')?.problems, {
        timeout: 10_000,
      })
      .toEqual([expect.stringMatching(/mcp\.json:1: mcpServers\.spy\.runAs: "root" is root/)]);
    expect(await call(gateway, session, 'spy__status')).toMatchObject({ Uid: four(OTHER) });
    server.runAs = 'nobody';
    await writeFile(place.config, JSON.stringify({ mcpServers: { spy: server }, builtIn: false }));
    await expect
      .poll(async () => (await call(gateway, session, 'spy__status')).Uid, { timeout: 20_000 })
      .toBe(four(NOBODY));
  });

  test(
    '§20.2 doctor: says which user programs run as, and asks them as that user',
    LONG,
    async () => {
      const place = await makePlace({ spy: { runAs: `${OTHER}:${OTHER}` } });
      const { find } = await runDoctor(undefined, {
        env: { ...OPEN, NODE_ENV: 'production' },
        args: ['--config', place.config],
      });
      expect(find('server.user')).toMatchObject({
        status: 'ok',
        what: 'Programs run as other users than the gateway: spy as 4321:4321.',
      });
      expect(find('server')).toMatchObject({ status: 'ok' });
    },
  );

  test('§18.7 lock: programs are asked as their user', LONG, async () => {
    const place = await makePlace({ spy: { runAs: `${OTHER}:${OTHER}` } });
    const { code, stderr } = await runInside(OPEN, { args: ['lock', '--config', place.config] });
    expect(code, stderr).toBe(0);
    const shown = await runInside(OPEN, { args: ['config', '--config', place.config] });
    expect(shown.stdout).toContain(', user 4321:4321');
  });
});

test.each([
  ['postern-no-such-user', /This system has no user "postern-no-such-user"\. Create it/],
  ['root', /"root" is root, or has its group/],
  ['0:4321', /"0:4321" is root, or has its group/],
  ['4321:0', /"4321:0" is root, or has its group/],
  ['4294967295:4321', /"4294967295:4321" is out of range/],
  ['4321:4294967296', /"4321:4294967296" is out of range/],
  ['4319', /"4319" is a number without a group\. Write uid:gid, such as 4319:4319\./],
  ['--help', /"--help" is not valid\. It must be a user of this system/],
])('§18.1 users: %s is refused, by member and by setting', async (user, says) => {
  const byMember = await refuse({ spy: { ...SPY, runAs: user } });
  expect(byMember).toMatch(/mcp\.json:\d+: mcpServers\.spy\.runAs: /);
  expect(byMember).toMatch(says);
  const bySetting = await refuse({ spy: SPY }, { RUN_PROGRAMS_AS: user });
  expect(bySetting).toContain('RUN_PROGRAMS_AS: ');
  expect(bySetting).toMatch(says);
});

test('§18.1 users: the gateway’s own user and group are refused, and what loads code into setpriv', async () => {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  const ofLoader = { LD_PRELOAD: '/tmp/x.so', LOCPATH: '/tmp' };
  const problems = await refuse({
    user: { ...SPY, runAs: `${uid}:${OTHER}` },
    group: { ...SPY, runAs: `${OTHER}:${gid}` },
    loader: { ...SPY, runAs: `${OTHER}:${OTHER}`, env: ofLoader },
  });
  expect(problems).toMatch(/mcpServers\.user\.runAs: .*(is root|the user of the gateway itself)/);
  expect(problems).toMatch(/mcpServers\.group\.runAs: .*(is root|has a group of the gateway)/);
  expect(problems).toMatch(/mcpServers\.loader\.env: LD_PRELOAD, LOCPATH cannot be set/);
});

test('§18.1 users: a server with a URL has none', async () => {
  const web = { url: 'http://127.0.0.1:9/mcp', runAs: 'nobody' };
  expect(await refuse({ web })).toMatch(/mcpServers\.web\.runAs: Only a server with command/);
});

test.each([
  { dropped: '-kill', missing: 'CAP_KILL' },
  { dropped: '-kill,-setgid,-setuid', missing: 'CAP_KILL, CAP_SETGID, CAP_SETUID' },
])('§18.3 users: without $dropped the start says what is missing', async ({ dropped, missing }) => {
  const place = await makePlace({ spy: { runAs: 'nobody' } });
  const main = [process.execPath, join(process.cwd(), 'dist/cli/main.js'), 'start'];
  const args = [`--bounding-set=${dropped}`, '--', ...main, '--config', place.config];
  const env = { ...OPEN, PATH: process.env.PATH ?? '' };
  // Who is not root has none of them, and could not drop them either.
  const { stderr } = IS_ROOT
    ? spawnSync('setpriv', args, { env, cwd: place.folder, encoding: 'utf8' })
    : { stderr: await refuse({ spy: { ...SPY, runAs: 'nobody' } }) };
  expect(stderr).toContain(
    `(spy): it lacks ${IS_ROOT ? missing : 'CAP_KILL, CAP_SETGID, CAP_SETUID'}. Start it as root`,
  );
});

test(
  '§10 users: in production, programs of the gateway’s own user are worth one line, and a finding',
  LONG,
  async () => {
    const place = await makePlace({ one: {}, two: {} });
    const says =
      'Programs that run as the user of the gateway can read its secrets and end it: one, two. Set RUN_PROGRAMS_AS to another user of the system (Linux), or "runAs" of each server.';
    const warningsOf = async (env: Env) => {
      const gateway = await startAt(place, env);
      const found = gateway.log().filter(({ msg }) => msg.startsWith('Programs that run'));
      gateway.kill('SIGTERM');
      await gateway.ended;
      return found.map(({ level, msg }) => [level, msg]);
    };
    expect(await warningsOf({ NODE_ENV: 'production' })).toEqual([['warn', says]]);
    expect(await warningsOf({})).toEqual([]);
    const { find } = await runDoctor(undefined, {
      env: { ...OPEN, NODE_ENV: 'production' },
      args: ['--config', place.config],
    });
    expect(find('server.user')).toMatchObject({
      status: 'warning',
      what: says,
      setting: 'RUN_PROGRAMS_AS',
    });
  },
);
