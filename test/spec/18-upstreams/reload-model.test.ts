// The configuration file, edited in any order while calls run: a model says which tools there are, and what each call
// has to come to.
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { followConfigFile } from '../../../src/cli/setup/config-file.ts';
import type { ReadSetup } from '../../../src/cli/setup/read-setup.ts';
import { formatProblem } from '../../../src/config/problem.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { callTool } from '../../support/clients/stateless.ts';
import type { TestResponse } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import {
  type CatalogGateway,
  startCatalogGateway,
} from '../../support/upstreams/catalog-gateway.ts';
import { parseFile } from '../../support/upstreams/gateway-file.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';

const RUNS = chooseCount(5, 60);
const MAX_COMMANDS = 30;
const NO_LIMITS = { MCP_RATE_LIMIT_MAX: '1000000', MCP_GLOBAL_RATE_LIMIT_MAX: '1000000' };

const OFTEN = { interval: 2 };
/** Before connections that nobody uses would be closed for that. */
const AT_ONCE = { interval: 2, timeout: 3000 };

const NAMES = ['one', 'two', 'three'] as const;
const TOOLS = ['say', 'wait'] as const;
type Name = (typeof NAMES)[number];

/** A file that says something; `text` is what is written. */
interface Edit {
  readonly text: string;
  /** Undefined for a file with problems. */
  readonly content: Content | undefined;
}

interface Content {
  /** The tools that may be used: their names, and whose they are. */
  readonly offers: ReadonlyMap<string, Name>;
  readonly rules: 'some' | 'everyone' | 'none';
}

interface ServedServer {
  readonly url: string;
  /** Of the tool `wait`: whether the call with this word has come. */
  isWaiting(word: string): boolean;
  /** Answers it. */
  release(word: string): void;
  countConnections(): Promise<number>;
  close(): Promise<void>;
}

/** A server of the session era: `say` answers with its name and what it was told, `wait` when the test says so. */
async function startServer(name: Name): Promise<ServedServer> {
  const waiting = new Map<unknown, () => void>();
  const { server, url, close } = await listenOnLoopback(async (req, res) => {
    if (req.method !== 'POST') return void res.writeHead(405).end();
    const { id, method, params }: JsonObject = JSON.parse(await text(req));
    if (id === undefined) return void res.writeHead(202).end();
    if (method === 'server/discover') return void res.writeHead(400).end();
    const { name: tool, arguments: args } = Object(params);
    const answer = () =>
      send(res, id, { content: [{ type: 'text', text: `${name}: ${args.word}` }] });
    if (tool === 'wait') waiting.set(args.word, answer);
    else if (tool === 'say') answer();
    else send(res, id, RESULTS[String(method)] ?? {});
  });
  return {
    url,
    close,
    isWaiting: (word) => waiting.has(word),
    release(word) {
      const answer = waiting.get(word);
      // The next run begins with the same words.
      waiting.delete(word);
      answer?.();
    },
    countConnections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
  };
}

const RESULTS: Readonly<Record<string, JsonObject>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'model', version: '1' },
  },
  'tools/list': { tools: TOOLS.map((name) => ({ name, inputSchema: { type: 'object' } })) },
};

function send(res: ServerResponse, id: unknown, result: JsonObject): void {
  res.setHeader('content-type', 'application/json');
  res.setHeader('mcp-session-id', 'a');
  res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** The gateway and its file, as `--config` follows it. */
async function startSystem() {
  const servers = {
    one: closeAfterTest(await startServer('one')),
    two: closeAfterTest(await startServer('two')),
    three: closeAfterTest(await startServer('three')),
  };
  const gateway = closeAfterTest(
    await startCatalogGateway({ file: { mcpServers: {} }, env: NO_LIMITS }),
  );
  let written = '';
  const read = async (): Promise<ReadSetup> => {
    const parsed = await parseFile(written, { hasStateSecret: true });
    if (parsed.kind === 'problems') {
      const problems = parsed.problems.map((message) => ({ message }));
      return { kind: 'problems', problems, isWhole: true };
    }
    const setup = { file: parsed.file, lock: undefined, meansNoLock: false };
    return { kind: 'parsed', setup, warnings: [], isWhole: true };
  };
  written = '{ "mcpServers": {} }';
  const first = await read();
  if (first.kind === 'problems') throw new Error(first.problems.map(formatProblem).join('\n'));
  const nowhere = { path: '/nowhere/mcp.json', stamp: 'none' };
  const following = followConfigFile(first.setup, { file: nowhere, lock: nowhere }, read, {
    load: (setup) => gateway.gateway.reload(setup),
    findIdlePatterns: ({ file }) => gateway.gateway.findIdlePatterns(file),
    close: async () => {},
    log: collectLog().log,
  });
  closeAfterTest({ close: following.stop });
  return {
    servers,
    gateway,
    /** Resolves to whether it was loaded. */
    write(next: string): Promise<boolean> {
      written = next;
      return following.loadLock();
    },
  };
}

type System = Awaited<ReturnType<typeof startSystem>> & { readonly session: string };

interface CallUnderWay {
  readonly server: Name;
  readonly word: string;
  readonly response: Promise<TestResponse>;
}

interface Model {
  served: Content;
  words: number;
  readonly underWay: CallUnderWay[];
}

type Command = fc.AsyncCommand<Model, System>;

/** Files that have lost all rules are not loaded. */
const isLoaded = (served: Content, next: Content | undefined): next is Content =>
  next !== undefined && !(served.rules === 'some' && next.rules === 'none');

const edit = ({ text: written, content }: Edit): Command => ({
  check: () => true,
  async run(model, { write }) {
    const loads = isLoaded(model.served, content);
    expect(await write(written)).toBe(loads);
    if (loads) model.served = content;
  },
  toString: () => `the file is ${written}`,
});

/** Of edits that come while another is loaded, the last one counts. */
const editInARow = (edits: readonly Edit[]): Command => ({
  check: () => true,
  async run(model, { write }) {
    const { content } = edits.at(-1) ?? {};
    const loaded = await Promise.all(edits.map(({ text: written }) => write(written)));
    // Which of the others were loaded, and so what may be lost, depends on the moment.
    expect(loaded.at(-1)).toBe(true);
    if (content !== undefined) model.served = content;
  },
  toString: () =>
    `the file is in a row ${edits.map(({ text: written }) => written).join(', then ')}`,
});

async function callTo(
  { gateway, session }: System,
  name: string,
  word: string,
  isStateless: boolean,
): Promise<TestResponse> {
  if (isStateless) return callTool(gateway, name, { word });
  return gateway.call(session, 'tools/call', { name, arguments: { word } });
}

const readText = ({ json }: TestResponse): unknown => json.result?.content?.[0]?.text;

const call = (name: string, isStateless: boolean): Command => ({
  check: () => true,
  async run(model, system) {
    const word = `word ${++model.words}`;
    const response = await callTo(system, name, word, isStateless);
    const server = model.served.offers.get(name);
    if (server === undefined) expect(JSON.stringify(response.json)).not.toContain(word);
    else expect(response.json.result).toMatchObject({ content: [{ text: `${server}: ${word}` }] });
  },
  toString: () => `${name} is called (${isStateless ? 'stateless' : 'in a session'})`,
});

const startCall = (name: string, isStateless: boolean): Command => ({
  check: ({ served, underWay }) => served.offers.has(name) && underWay.length < 6,
  async run(model, system) {
    const server = model.served.offers.get(name);
    if (server === undefined) return;
    const word = `word ${++model.words}`;
    const response = callTo(system, name, word, isStateless);
    model.underWay.push({ server, word, response });
    await expect.poll(() => system.servers[server].isWaiting(word), OFTEN).toBe(true);
  },
  toString: () => `${name} is called, and not answered yet`,
});

const finish = (server: Name): Command => ({
  check: ({ underWay }) => underWay.some((one) => one.server === server),
  run: (model, system) => finishOne(model, system, server),
  toString: () => `${server} answers`,
});

async function finishOne(model: Model, { servers }: System, server: Name): Promise<void> {
  const index = model.underWay.findIndex((one) => one.server === server);
  const [done] = model.underWay.splice(index, 1);
  if (done === undefined) throw new Error(`No call waits at ${server}.`);
  servers[server].release(done.word);
  expect(readText(await done.response)).toBe(`${server}: ${done.word}`);
}

const list = (): Command => ({
  check: () => true,
  async run({ served }, { gateway, session }) {
    const names = await gateway.listNames('tools/list', session);
    expect([...names].sort()).toEqual([...served.offers.keys()].sort());
  },
  toString: () => 'the tools are listed',
});

const PREFIXES = ['', 'new-'];
const RULES = ['none', 'everyone', ...NAMES] as const;

/** Which servers, by which prefix and with which header (another makes other connections), and who may use what. */
const anyServers = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom(...NAMES),
    prefix: fc.constantFrom(...PREFIXES),
    header: fc.constantFrom('a', 'b'),
  }),
  { selector: ({ name }) => name },
);

interface ServerEntry {
  readonly name: Name;
  readonly prefix: string;
  readonly header: string;
}

type RulesMember = (typeof RULES)[number];

function buildEdit(
  urls: Readonly<Record<Name, string>>,
  servers: readonly ServerEntry[],
  rules: RulesMember,
): Edit {
  const mcpServers = Object.fromEntries(
    servers.map(({ name, prefix, header }) => [
      name,
      { url: urls[name], prefix: prefix + name, headers: { 'x-header': header } },
    ]),
  );
  const offers = new Map(
    servers.flatMap(({ name, prefix }) =>
      rules === 'none' || rules === 'everyone' || rules === name
        ? TOOLS.map((tool) => [`${prefix}${name}__${tool}`, name] as const)
        : [],
    ),
  );
  const isRuled = rules !== 'none' && rules !== 'everyone';
  const spelled = isRuled
    ? PREFIXES.map((prefix) => ({ who: 'everyone', may: [`${prefix}${rules}__*`] }))
    : rules;
  return {
    text: JSON.stringify({ mcpServers, ...(rules !== 'none' && { rules: spelled }) }),
    content: { offers, rules: isRuled ? 'some' : rules },
  };
}

const BROKEN = [
  (whole: string) => whole.slice(0, -2),
  (whole: string) => whole.replace('{', '{ "mcpServer": {}, '),
  () => '{ "mcpServers": { "one": { "urll": "http://127.0.0.1:1/mcp" } } }',
  () => '{ "mcpServers": {}, "rules": [{ "when": "nonsense(", "may": ["*"] }] }',
  () => '',
];

function describeCommands(urls: Readonly<Record<Name, string>>) {
  const anyEdit = fc
    .tuple(anyServers, fc.constantFrom(...RULES))
    .map((parts) => buildEdit(urls, ...parts));
  const brokenEdit = fc
    .tuple(anyEdit, fc.constantFrom(...BROKEN))
    .map(([{ text: whole }, spoil]): Edit => ({ text: spoil(whole), content: undefined }));
  const protectedEdit = anyEdit.filter(({ content }) => content?.rules !== 'none');
  const anyName = fc
    .tuple(fc.constantFrom(...PREFIXES), fc.constantFrom(...NAMES))
    .map((parts) => parts.join(''));
  return [
    anyEdit.map(edit),
    anyEdit.map(edit),
    brokenEdit.map(edit),
    fc
      .tuple(fc.array(fc.oneof(anyEdit, brokenEdit), { maxLength: 3 }), protectedEdit)
      .map(([former, last]) => editInARow([...former, last])),
    fc.tuple(anyName, fc.boolean()).map(([name, is]) => call(`${name}__say`, is)),
    fc.tuple(anyName, fc.boolean()).map(([name, is]) => call(`${name}__say`, is)),
    fc.tuple(anyName, fc.boolean()).map(([name, is]) => startCall(`${name}__wait`, is)),
    fc.constantFrom(...NAMES).map(finish),
    fc.constant(list()),
  ];
}

const NOTHING: Edit = {
  text: '{ "mcpServers": {}, "rules": "everyone" }',
  content: { offers: new Map(), rules: 'everyone' },
};

test('§18.1 changes: whatever the file becomes, a call under way ends as it began, and later ones see the last file without problems', async () => {
  const started = await startSystem();
  const { servers, gateway } = started;
  const urls = { one: servers.one.url, two: servers.two.url, three: servers.three.url };
  await fc.assert(
    fc.asyncProperty(
      fc.commands(describeCommands(urls), { maxCommands: MAX_COMMANDS, size: 'max' }),
      async (commands) => {
        const system: System = { ...started, session: await gateway.open() };
        const model: Model = {
          served: { offers: new Map(), rules: 'some' },
          words: 0,
          underWay: [],
        };
        await edit(NOTHING).run(model, system);
        try {
          await fc.asyncModelRun(() => ({ model, real: system }), commands);
        } finally {
          while (model.underWay[0]) await finishOne(model, system, model.underWay[0].server);
        }
        await edit(NOTHING).run(model, system);
        await expectNothingLeft(system);
      },
    ),
    { numRuns: RUNS, interruptAfterTimeLimit: 120_000 },
  );
}, 600_000);

/** Without servers the gateway has no connection to any. */
async function expectNothingLeft({
  servers,
  gateway,
}: {
  servers: Readonly<Record<Name, ServedServer>>;
  gateway: CatalogGateway;
}): Promise<void> {
  expect(gateway.gateway.listServers()).toEqual([]);
  for (const name of NAMES) {
    await expect.poll(servers[name].countConnections, AT_ONCE).toBe(0);
  }
}
