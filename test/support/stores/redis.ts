import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { generate } from 'selfsigned';
import { freePort } from '../gateway/ports.ts';
import { endProcess } from '../tools/server-process.ts';

export interface RedisOptions {
  readonly password?: string;
  /** A certificate of its own, or the one given. */
  readonly tls?: boolean | Certificate;
  /** Further lines of redis.conf. */
  readonly config?: readonly string[];
}

export interface Certificate {
  /** PEM; its own authority. */
  readonly cert: string;
  readonly key: string;
}

export interface RedisServer {
  /** As REDIS_URL takes it. */
  readonly url: string;
  readonly port: number;
  /** PEM of the authority that signed the server's certificate (TLS only). */
  readonly ca: string | undefined;
  /** A client of the test's own. */
  client(): Redis;
  /** kill -9. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Starts again on the same port, empty. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A real redis-server on loopback, without persistence. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-redis-'));
  const ca = options.tls ? await writeCertificate(folder, options.tls) : undefined;
  const config = join(folder, 'redis.conf');
  const linesFor = (candidate: number) => configLines(candidate, folder, options);
  const { port, ...started } = await startOnFreePort(config, linesFor);
  let { child } = started;
  const clients: Redis[] = [];

  const scheme = options.tls ? 'rediss' : 'redis';
  const credentials = options.password ? `:${options.password}@` : '';
  const url = `${scheme}://${credentials}127.0.0.1:${port}`;

  return {
    url,
    port,
    ca,
    client() {
      const client = new Redis(url, {
        ...(ca !== undefined && { tls: { ca } }),
        retryStrategy: () => 50,
      });
      client.on('error', () => {});
      clients.push(client);
      return client;
    },
    kill: () => endProcess(child),
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async restart() {
      child = await start(config);
    },
    async close() {
      for (const client of clients) client.disconnect();
      await endProcess(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function configLines(port: number, folder: string, { password, tls, config = [] }: RedisOptions) {
  const listening = tls
    ? [
        'port 0',
        `tls-port ${port}`,
        `tls-cert-file ${folder}/tls.crt`,
        `tls-key-file ${folder}/tls.key`,
        `tls-ca-cert-file ${folder}/tls.crt`,
        'tls-auth-clients no',
      ]
    : [`port ${port}`];
  return [
    'bind 127.0.0.1',
    'save ""',
    'appendonly no',
    'daemonize no',
    `dir ${folder}`,
    ...(password ? [`requirepass ${password}`] : []),
    ...listening,
    ...config,
  ];
}

export async function writeCertificate(folder: string, tls: true | Certificate): Promise<string> {
  const { cert, key } = tls === true ? await newCertificate() : tls;
  await writeFile(join(folder, 'tls.crt'), cert);
  await writeFile(join(folder, 'tls.key'), key, { mode: 0o600 });
  return cert;
}

export async function newCertificate(): Promise<Certificate> {
  const attributes = [{ name: 'commonName', value: '127.0.0.1' }];
  const { private: key, cert } = await generate(attributes, {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
    ],
  });
  return { cert, key };
}

/** Somebody may take the port, or the one of the cluster bus, between the look and the start. */
async function startOnFreePort(config: string, linesFor: (port: number) => readonly string[]) {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    await writeFile(config, linesFor(port).join('\n'));
    try {
      return { port, child: await start(config) };
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}

/** Resolves when the server says that it accepts connections, or what is given as `sign`. */
export function start(
  config: string,
  args: readonly string[] = [],
  sign = 'Ready to accept connections',
): Promise<ChildProcess> {
  const child = spawn('redis-server', [config, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
      if (output.includes(sign)) resolve(child);
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}:\n${output}`)));
  });
}
