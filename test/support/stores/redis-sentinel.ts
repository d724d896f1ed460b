import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../gateway/ports.ts';
import { endProcess } from '../tools/server-process.ts';
import {
  type Certificate,
  newCertificate,
  type RedisServer,
  start,
  startRedis,
  writeCertificate,
} from './redis.ts';

export interface SentinelOptions {
  /** Of the Redis servers. */
  readonly password?: string;
  readonly sentinelPassword?: string;
  readonly tls?: boolean;
}

export interface RedisWithSentinels {
  /** As REDIS_URL takes it. */
  readonly url: string;
  /** PEM of the authority of all certificates (TLS only). */
  readonly ca: string | undefined;
  /** The primary at the start, then its replica. */
  readonly servers: readonly [RedisServer, RedisServer];
  readonly sentinels: readonly Sentinel[];
  close(): Promise<void>;
}

export interface Sentinel {
  readonly port: number;
  /** kill -9. */
  kill(): Promise<void>;
  freeze(): void;
  restart(): Promise<void>;
  /** What it knows of the primary. */
  ask(): Promise<ReadonlyMap<string, string>>;
  /** Makes it fail over, as an operator would by hand. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

/** By which the sentinels know the primary. */
export const PRIMARY_NAME = 'main.sessions';

/** A primary, a replica and three sentinels on loopback, which fail over within a few seconds. */
export async function startRedisSentinel(
  options: SentinelOptions = {},
): Promise<RedisWithSentinels> {
  const { password, sentinelPassword } = options;
  const tls = options.tls ? await newCertificate() : false;
  const config = [
    'repl-diskless-sync-delay 0',
    ...(password ? [`masterauth ${password}`] : []),
    ...(tls ? ['tls-replication yes'] : []),
  ];
  const shared = { ...(password && { password }), tls };
  const primary = await startRedis({ ...shared, config });
  const replicaOf = `replicaof 127.0.0.1 ${primary.port}`;
  const replica = await startRedis({ ...shared, config: [...config, replicaOf] });
  // They know one another from the start: it takes them two seconds to find out.
  const places: Place[] = [];
  for (const at of [1, 2, 3]) places.push({ id: String(at).repeat(40), port: await freePort() });
  const sentinels = await Promise.all(
    places.map((place) => startSentinel(place, primary.port, places, { ...options, tls })),
  );
  await until(async () => {
    const answers = await Promise.all(sentinels.map(({ ask }) => ask()));
    return answers.every(
      (answer) => answer.get('num-slaves') === '1' && answer.get('num-other-sentinels') === '2',
    );
  });

  const scheme = tls ? 'rediss+sentinel' : 'redis+sentinel';
  const credentials = password ? `:${encodeURIComponent(password)}@` : '';
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const query = sentinelPassword ? `?sentinelPassword=${encodeURIComponent(sentinelPassword)}` : '';
  return {
    url: `${scheme}://${credentials}${hosts}/${PRIMARY_NAME}${query}`,
    ca: tls ? tls.cert : undefined,
    servers: [primary, replica],
    sentinels,
    async close() {
      for (const sentinel of sentinels) await sentinel.close();
      for (const server of [primary, replica]) await server.close();
    },
  };
}

interface Place {
  readonly id: string;
  readonly port: number;
}

async function startSentinel(
  { id, port }: Place,
  primaryPort: number,
  places: readonly Place[],
  { password, sentinelPassword, tls }: Omit<SentinelOptions, 'tls'> & { tls: Certificate | false },
): Promise<Sentinel> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-sentinel-'));
  const configFile = join(folder, 'sentinel.conf');
  const ca = tls ? await writeCertificate(folder, tls) : undefined;
  const lines = [
    'bind 127.0.0.1',
    `dir ${folder}`,
    ...(tls
      ? [
          'port 0',
          `tls-port ${port}`,
          `tls-cert-file ${folder}/tls.crt`,
          `tls-key-file ${folder}/tls.key`,
          `tls-ca-cert-file ${folder}/tls.crt`,
          'tls-auth-clients no',
          'tls-replication yes',
        ]
      : [`port ${port}`]),
    ...(sentinelPassword
      ? [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]
      : []),
    `sentinel myid ${id}`,
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primaryPort} 2`,
    ...(password ? [`sentinel auth-pass ${PRIMARY_NAME} ${password}`] : []),
    `sentinel down-after-milliseconds ${PRIMARY_NAME} 500`,
    `sentinel failover-timeout ${PRIMARY_NAME} 3000`,
    ...places
      .filter((other) => other.id !== id)
      .map(
        (other) => `sentinel known-sentinel ${PRIMARY_NAME} 127.0.0.1 ${other.port} ${other.id}`,
      ),
  ];
  await writeFile(configFile, lines.join('\n'));
  const run = () => start(configFile, ['--sentinel'], '+monitor');
  let child = await run();
  const client = new Redis({
    host: '127.0.0.1',
    port,
    ...(sentinelPassword && { password: sentinelPassword }),
    ...(ca && { tls: { ca } }),
    retryStrategy: () => 50,
  });
  client.on('error', () => {});

  return {
    port,
    kill: () => endProcess(child),
    freeze: () => void child.kill('SIGSTOP'),
    async restart() {
      child = await run();
    },
    async ask() {
      const reply = await client.call('SENTINEL', 'MASTER', PRIMARY_NAME);
      const list = Array.isArray(reply) ? reply.map(String) : [];
      return new Map(list.flatMap((name, at) => (at % 2 ? [] : [[name, list[at + 1] ?? '']])));
    },
    async failOver() {
      // It refuses until it has asked the replica how it is.
      await until(() =>
        client.call('SENTINEL', 'FAILOVER', PRIMARY_NAME).then(
          () => true,
          () => false,
        ),
      );
    },
    async close() {
      client.disconnect();
      await endProcess(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('The sentinels did not get ready');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
