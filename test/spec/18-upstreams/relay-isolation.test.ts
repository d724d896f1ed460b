// Eight users at once, all with the same ids, over three servers: nobody gets what is another's.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { PROTOCOL_VERSION, STATELESS } from '../../support/clients/stateless.ts';
import { BASE_URL, INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';
import { connectMany, connectPipelined, type Post } from '../4.4-mcp/isolation-connections.ts';

const USERS = 8;
const CALLS = chooseCount(240, 4000);
const IN_FLIGHT_PER_USER = 12;
const LIMIT_MS = 300_000;
const NO_LIMITS = { MCP_RATE_LIMIT_MAX: '1000000', MCP_GLOBAL_RATE_LIMIT_MAX: '1000000' };
const HOST = new URL(BASE_URL).host;

const SERVERS = ['one', 'two', 'three'];
const ERAS = ['session', 'stateless'];
const TOOLS = ['say', 'say', 'count'];

interface User {
  readonly sub: string;
  readonly token: string;
  readonly session: string;
  readonly post: Post;
}

interface Call {
  readonly number: number;
  /** Each comes as a number and as a string, to each server, in each era. */
  readonly id: number | string;
  readonly era: string;
  readonly server: string;
  readonly tool: string;
}

function callOf(number: number): Call {
  const pick = (from: readonly string[], step: number) =>
    from[Math.floor(number / step) % from.length] ?? '';
  const id = Math.floor(number / 12) + 1;
  return {
    number,
    id: number % 2 === 0 ? id : String(id),
    era: pick(ERAS, 2),
    server: pick(SERVERS, 4),
    tool: pick(TOOLS, 12),
  };
}

const wordOf = (sub: string, { number, server, era }: Call): string =>
  `${createHash('sha256').update(sub).digest('hex')} ${sub} ${server} ${era} ${number}`;

/** What is wrong with what the user hears; undefined where nothing is. */
async function checkCall(user: User, call: Call): Promise<string | undefined> {
  const { id, era, server, tool, number } = call;
  const name = `${server}__${tool}`;
  const word = wordOf(user.sub, call);
  const isStateless = era === 'stateless';
  const heard = await postUntilTaken(
    user,
    {
      authorization: `Bearer ${user.token}`,
      accept: 'application/json, text/event-stream',
      ...(isStateless
        ? { 'mcp-protocol-version': STATELESS, 'mcp-method': 'tools/call', 'mcp-name': name }
        : { 'mcp-session-id': user.session }),
    },
    JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: {
        name,
        arguments: { word, turns: (number * 7) % 5 },
        _meta: {
          ...(tool === 'count' && { progressToken: id }),
          ...(isStateless && {
            [PROTOCOL_VERSION]: STATELESS,
            'io.modelcontextprotocol/clientCapabilities': {},
          }),
        },
      },
    }),
  );
  const told = messagesIn(heard).map(({ id: answered, params, result }) =>
    params
      ? ['progress', params.progressToken, params.progress, params.message]
      : ['answer', answered, result?.content?.[0]?.text],
  );
  const expected = [
    ...(tool === 'count' ? [1, 2, 3] : []).map((done) => ['progress', id, done, word]),
    ['answer', id, word],
  ];
  // JSON text tells 1 from "1".
  return JSON.stringify(told) === JSON.stringify(expected)
    ? undefined
    : `${user.sub}, ${name}, ${era} ${JSON.stringify(id)}: ${heard.status} ${heard.text}`;
}

/** On a busy machine the gateway refuses some calls; whoever called calls again. */
async function postUntilTaken({ post }: User, ...request: Parameters<Post>): ReturnType<Post> {
  for (;;) {
    const heard = await post(...request);
    if (heard.status !== 503) return heard;
  }
}

interface Message {
  readonly id?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: { readonly content?: readonly { readonly text?: unknown }[] };
}

const messagesIn = ({ headers, text }: Awaited<ReturnType<Post>>): readonly Message[] =>
  headers['content-type'] === 'text/event-stream'
    ? [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
    : [JSON.parse(text)];

async function checkCalls(user: User): Promise<readonly string[]> {
  const problems: string[] = [];
  let next = 0;
  async function work(): Promise<void> {
    while (next < CALLS / USERS && problems.length < 5) {
      const problem = await checkCall(user, callOf(next++));
      if (problem !== undefined) problems.push(problem);
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT_PER_USER }, work));
  return problems;
}

test.each([
  { how: 'one pipelined connection each', connect: connectPipelined },
  { how: 'many connections each', connect: connectMany },
])(
  `§18.3 isolation: ${CALLS} calls of 8 users over three servers, by $how, get their own answers`,
  async ({ connect }) => {
    const one = closeAfterTest(await startRelayServer1());
    const two = closeAfterTest(await startRelayServer2());
    const three = closeAfterTest(await startRelayServer1());
    const servers = { one: one.url, two: two.url, three: three.url };
    const gateway = closeAfterTest(await startRelayGateway({ servers, env: NO_LIMITS }));
    const port = await gateway.listen();

    async function createUser(_: unknown, number: number): Promise<User> {
      const sub = `user-${number}`;
      const token = await gateway.issuer.sign({ sub });
      const { post } = closeAfterTest(connect(port, HOST));
      const headers = { authorization: `Bearer ${token}` };
      const initialized = await post(headers, JSON.stringify(INITIALIZE_REQUEST));
      const session = initialized.headers['mcp-session-id'];
      if (session === undefined) throw new Error(`initialize answered ${initialized.text}`);
      return { sub, token, session, post };
    }

    const users = await Promise.all(Array.from({ length: USERS }, createUser));
    expect((await Promise.all(users.map(checkCalls))).flat()).toEqual([]);
    // A server's session never hears two users.
    const sessions = [...one.wordsBySession.values(), ...three.wordsBySession.values()];
    expect(sessions.length).toBe(2 * 2 * USERS);
    for (const words of sessions) {
      expect(new Set(words.map((word) => word.split(' ')[1])).size).toBe(1);
    }
  },
  LIMIT_MS,
);
