// Requests that are almost right, bytes that are no requests, and names that nobody has heard of.
import { randomBytes, randomInt } from 'node:crypto';
import { connect } from 'node:net';
import type { Sample } from '../../../test/support/fuzz/mutation-steps.ts';
import { mutate } from '../../../test/support/fuzz/mutations.ts';
import { createTally, type Tally } from '../client/tally.ts';
import { checkFact, type Fault } from '../fault.ts';
import type { Stage } from '../stage.ts';

const AT_ONCE = 64;
const SEED = 20_260_728;
/** Every so many inputs, one is hardly HTTP any more. */
const NOISE_EVERY = 20;
const HANG_MS = 15_000;
/** §7.5: those that a client's mistake may lead to. */
const STATUSES = new Set([
  200, 201, 202, 204, 302, 303, 304, 400, 401, 403, 404, 405, 406, 408, 413, 415, 417, 431,
]);
const STACK_TRACE = /^\s+at .+:\d+:\d+|node:internal|\/dist\/[\w/-]+\.js/m;

const malformed: Fault = {
  name: 'malformed',
  title: '1,000,000 malformed inputs.',
  figure: 'No crash, no hang, no 5xx, no stack trace.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {});
    const token = await issuer.sign();
    const client = await stage.startClient(gateway.url, issuer, { sessions: 1 });
    const samples = createSamples(token, client.sessionIds[0] ?? '');
    const tally = createTally();

    async function sendOne(index: number): Promise<void> {
      const { bytes, story } = createInput(index, samples, gateway.port, token);
      const start = performance.now();
      record(tally, judge(await sendBytes(gateway.port, bytes)), story, start);
    }

    await repeat(stage, stage.choose({ full: 1_000_000, short: 20_000 }), sendOne);
    const errors = gateway.log().filter(({ level }) => level === 'error');
    return {
      tally,
      checks: [
        checkFact('the process still runs', !gateway.hasEnded),
        checkFact('no error in the log', errors.length === 0, JSON.stringify(errors[0]) ?? 'none'),
        checkFact('still answers', (await client.ping()) === 'good'),
      ],
    };
  },
};

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'HEAD'] as const;
const PATHS = [
  '/mcp',
  '/health',
  '/health/ready',
  '/oauth/authorize',
  '/oauth/token',
  '/oauth/register',
  '/oauth/revoke',
  '/oauth/callback',
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-authorization-server',
  '/settings',
  '/',
];
/** Those of Node.js and of the process come and go by themselves. */
const OWN_SERIES = /^(http|mcp|auth|jwks|redis|rate)_/;

const names: Fault = {
  name: 'names',
  title: '100,000 random paths, methods and tool names.',
  figure: 'The number of metric series stays the same.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {
      METRICS_ENABLED: 'true',
      RATE_LIMIT_ENABLED: 'false',
    });
    const token = await issuer.sign();
    const [call] = createSamples(token, '');
    const tally = createTally();

    async function send(method: string, path: string, tool: string): Promise<void> {
      const isCall = method === 'POST' && path === '/mcp';
      const headers = isCall ? { ...call?.headers, 'mcp-name': tool } : {};
      const body = isCall ? JSON.stringify(call?.message).replaceAll('service_ping', tool) : '';
      const bytes = writeRequest(gateway.port, { method, path, headers, body });
      const start = performance.now();
      record(tally, judge(await sendBytes(gateway.port, bytes)), `${method} ${path}`, start);
    }

    // Every answer that there is to be had by known names, and one by an unknown one of each kind.
    for (const path of [...PATHS, '/unknown']) {
      for (const method of [...METHODS, 'BREW']) await send(method, path, 'unknown');
    }
    // The first look at the metrics is a request with a series, too.
    await listSeries(gateway.url);
    const before = new Set(await listSeries(gateway.url));
    await repeat(stage, stage.choose({ full: 100_000, short: 2000 }), () => {
      const word = randomBytes(randomInt(1, 12)).toString('hex');
      const path = randomInt(2) ? `/${word}` : (PATHS[randomInt(PATHS.length)] ?? '/');
      const method = METHODS[randomInt(METHODS.length)] ?? 'GET';
      return send(method, path, word);
    });
    const further = (await listSeries(gateway.url)).filter((series) => !before.has(series));
    return {
      tally,
      checks: [
        checkFact(
          'no further metric series',
          further.length === 0,
          `${further.length} ${further[0] ?? ''}`,
        ),
      ],
    };
  },
};

async function listSeries(url: string): Promise<readonly string[]> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => OWN_SERIES.test(line));
  return lines.map((line) => line.slice(0, line.lastIndexOf(' ')));
}

/** One valid request of some methods; the first is a stateless tools/call. */
function createSamples(token: string, session: string): readonly Sample[] {
  const common = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${token}`,
  };
  const ping = { name: 'service_ping', arguments: { message: 'hello' } };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'chaos', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const stateless: Sample = {
    name: 'stateless tools/call',
    headers: {
      ...common,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'service_ping',
    },
    message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...ping, _meta: meta } },
  };
  const inSession = Object.entries({
    'tools/call': ping,
    'tools/list': {},
    'prompts/get': { name: 'greeting', arguments: { name: 'Ada', style: 'formal' } },
    'resources/read': { uri: 'config://server' },
    'logging/setLevel': { level: 'warning' },
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    },
  }).map(
    ([method, params]): Sample => ({
      name: method,
      headers: {
        ...common,
        ...(method !== 'initialize' && { 'mcp-session-id': session }),
        'mcp-protocol-version': '2025-11-25',
      },
      message: { jsonrpc: '2.0', id: 1, method, params },
    }),
  );
  return [stateless, ...inSession];
}

interface Input {
  readonly bytes: Buffer;
  /** For the report of a failure. */
  readonly story: string;
}

function createInput(
  index: number,
  samples: readonly Sample[],
  port: number,
  token: string,
): Input {
  if (index % NOISE_EVERY === 0) {
    const noise = createNoise(port, token);
    return { bytes: noise, story: `bytes ${noise.toString('base64').slice(0, 400)}` };
  }
  const { headers, body, story } = mutate(samples, SEED, index);
  const bytes = writeRequest(port, { method: 'POST', path: '/mcp', headers, body });
  return { bytes, story: `input ${index} (${story.slice(0, 200)})` };
}

/** Sent unchanged: no library corrects or refuses it. */
function writeRequest(
  port: number,
  request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | Buffer;
  },
): Buffer {
  const { method, path, headers, body } = request;
  const length = Buffer.byteLength(body);
  const all = { host: `127.0.0.1:${port}`, 'content-length': String(length), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${path} HTTP/1.1\r\nconnection: close\r\n${lines.join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** A request with some of its bytes changed, or nothing but chance. */
function createNoise(port: number, token: string): Buffer {
  if (randomInt(4) === 0) return randomBytes(randomInt(1, 2000));
  const bytes = writeRequest(port, {
    method: 'POST',
    path: '/mcp',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  for (let times = randomInt(1, 8); times > 0; times -= 1) {
    bytes[randomInt(bytes.length)] = randomInt(256);
  }
  return bytes.subarray(0, randomInt(2) ? bytes.length : randomInt(bytes.length));
}

/** The bytes received until the connection is closed; undefined if it stays open. */
function sendBytes(port: number, bytes: Buffer): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.setTimeout(HANG_MS, () => {
      resolve(undefined);
      socket.destroy();
    });
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
    socket.end(bytes);
  });
}

function judge(received: string | undefined): string | undefined {
  if (received === undefined) return 'no answer, and the connection stays open';
  const statuses = [...received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) =>
    Number(status),
  );
  const unknown = statuses.find((status) => !STATUSES.has(status));
  if (unknown !== undefined) return `a ${unknown}: ${received.slice(0, 400)}`;
  return STACK_TRACE.test(received) ? `a stack trace: ${received.slice(0, 400)}` : undefined;
}

function record(tally: Tally, fault: string | undefined, what: string, start: number): void {
  const ms = performance.now() - start;
  if (fault === undefined) tally.record('good', ms);
  else tally.recordWrong(`${what}: ${fault}`, ms);
}

/** Some at a time. */
async function repeat(
  stage: Stage,
  count: number,
  send: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  async function work(): Promise<void> {
    while (next < count && !stage.signal.aborted) {
      next += 1;
      await send(next);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

export const malformedFaults: readonly Fault[] = [malformed, names];
