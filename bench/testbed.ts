// What all measurements need: a provider with a key set, a Redis server with a database for each
// contestant, a token, a folder, and the answer that `bare` and `floor` repeat.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../test/support/gateway/ports.ts';
import { startIssuer } from '../test/support/oauth/issuer.ts';
import { startRedis } from '../test/support/stores/redis.ts';
import { type Call, createCall, type Work } from './calls.ts';
import { renderAnswerFile, sendCall } from './check-answers.ts';
import { type Command, type Contestant, type Era, runPostern } from './contestants.ts';
import { LOAD_CORE, type ServerProcess, startServer } from './server-process.ts';
import { ensureWrk } from './wrk.ts';

export interface Testbed {
  readonly folder: string;
  /** Of the server; each service has a database of its own. */
  readonly redisUrl: string;
  /** A server that is stopped with the testbed, unless it was before. */
  start(command: Command, options?: StartOptions): Promise<ServerProcess>;
  createCall(server: ServerProcess, era: Era, work?: Work): Promise<Call>;
  /** The call of so many users in turn, each with an address (for TRUST_PROXY) and a session. */
  createCallOfMany(server: ServerProcess, users: number): Promise<Call>;
  /** Of another user than the one who makes the calls; the same each time. */
  signToken(user: string): Promise<string>;
  close(): Promise<void>;
}

export interface StartOptions {
  /** On which the server may run, where it is not its own core alone. */
  readonly cores?: string;
  /** Options of node itself, such as --trace-gc-nvp. */
  readonly nodeOptions?: readonly string[];
  /** Called before the server starts, with its environment. */
  prepare?(env: Readonly<Record<string, string>>): Promise<void>;
}

/** Those whose servers still run. */
const openTestbeds = new Set<Testbed>();

/** For an end from outside: nothing stays behind. */
export async function closeTestbeds(): Promise<void> {
  await Promise.all([...openTestbeds].map((testbed) => testbed.close()));
}

const AUDIENCE = 'postern-bench';
const DATABASES = 1000;

export async function openTestbed(contestants: readonly Contestant[] = []): Promise<Testbed> {
  if (process.platform !== 'linux') throw new Error('The benchmark needs Linux: it reads /proc.');
  if (cpus().length < 2) throw new Error('The benchmark needs two cores.');
  if (!existsSync('dist/cli/main.js')) throw new Error('Run npm run build first.');
  ensureWrk();
  if (contestants.some(({ needsInstall }) => needsInstall)) installPackages();
  // What this process starts inherits it, but for the servers: they get the other core.
  execFileSync('taskset', ['-acp', LOAD_CORE, String(process.pid)], { stdio: 'ignore' });

  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'));
  const answerFile = join(folder, 'answer.json');
  const issuer = await startIssuer();
  const redis = await startRedis({ config: [`databases ${DATABASES}`] });
  const exp = Math.floor(Date.now() / 1000) + 86_400;
  const token = await issuer.sign({ aud: AUDIENCE, exp });
  const tokens = new Map<string, Promise<string>>();
  const servers: ServerProcess[] = [];
  let database = 0;

  const testbed: Testbed = {
    folder,
    redisUrl: redis.url,
    async start(command, { nodeOptions = [], prepare, cores } = {}) {
      const port = await freePort();
      const redisUrl = `${redis.url}/${++database}`;
      const dataDir = join(folder, randomUUID());
      mkdirSync(dataDir);
      const surroundings = { port, redisUrl, issuer: issuer.url, audience: AUDIENCE };
      const { args, env, ...rest } = command({ ...surroundings, dataDir, answerFile });
      await prepare?.(env);
      const placed = cores === undefined ? {} : { cores };
      const server = await startServer({
        ...rest,
        ...placed,
        args: [...nodeOptions, ...args],
        env,
        port,
      });
      servers.push(server);
      return server;
    },
    createCall: ({ url }, era, work) => createCall(url, token, era, work),
    async createCallOfMany({ url }, users) {
      const callers: Record<string, string>[] = [];
      let call: Call | undefined;
      for (let n = 0; n < users; n++) {
        const own = await issuer.sign({ sub: `user-${n}`, aud: AUDIENCE, exp });
        call = await createCall(url, own, 'session');
        callers.push({
          authorization: `Bearer ${own}`,
          'mcp-session-id': call.headers['mcp-session-id'] ?? '',
          'x-forwarded-for': `10.0.${n >> 8}.${n & 255}`,
        });
      }
      if (call === undefined) throw new Error('There is no user');
      return { ...call, callers };
    },
    signToken(user) {
      const known = tokens.get(user);
      if (known !== undefined) return known;
      const signed = issuer.sign({ aud: AUDIENCE, exp, sub: user });
      tokens.set(user, signed);
      return signed;
    },
    async close() {
      openTestbeds.delete(testbed);
      await Promise.all(servers.map((server) => server.stop()));
      await redis.close();
      await issuer.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  openTestbeds.add(testbed);
  try {
    await writeFile(answerFile, await learnAnswer(testbed));
  } catch (error) {
    await testbed.close();
    throw error;
  }
  return testbed;
}

async function learnAnswer(testbed: Testbed): Promise<string> {
  const server = await testbed.start(runPostern('redis'));
  const id = randomUUID();
  const answer = await sendCall(await testbed.createCall(server, 'session'), id);
  await server.stop();
  return renderAnswerFile(answer, id);
}

function installPackages(): void {
  const cwd = 'bench/contestants';
  if (existsSync(join(cwd, 'node_modules', 'fastmcp'))) return;
  console.log('Installing the packages of the other contestants …');
  execFileSync('npm', ['ci', '--ignore-scripts', '--silent'], { cwd, stdio: 'inherit' });
}
