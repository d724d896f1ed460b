// MCP Inspector in its command line form, with a token at hand.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { createClientTestCatalog, TODAY } from '../support/catalogs/client-test-catalog.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';
import {
  INSTALLATION_MS,
  inFolder,
  installNpxTool,
  type NpxTool,
} from '../support/tools/npx-tool.ts';

const SLOW = { timeout: 120_000 } as const;

const { catalog } = createClientTestCatalog();
const service = useShared(() => startService({ mode: 'broker', deps: { catalog } }));
let inspector: NpxTool;
let token: string;

beforeAll(async () => {
  inspector = await installNpxTool({
    name: '@modelcontextprotocol/inspector@2.12.0',
    command: 'mcp-inspector',
  });
  token = (await service.logIn('ada')).accessToken;
}, INSTALLATION_MS * 2);

/** It keeps nothing: its home is a folder of the call. */
const inspect = (args: readonly string[], signal: AbortSignal) =>
  inFolder((HOME) =>
    promisify(execFile)(
      inspector.node,
      [
        ...[inspector.script, '--cli', service.mcpUrl.href, '--transport', 'http'],
        ...['--format', 'json', '--quiet', '--stored-auth-only'],
        ...args,
      ],
      { env: { ...process.env, HOME }, signal },
    ),
  );

const text = (words: string) => ({ type: 'text', text: words });
const named = (name: string) => expect.objectContaining({ name });

const ERRANDS = [
  [['tools/list'], { tools: expect.arrayContaining([named('add'), named('wait')]) }],
  [
    ['tools/call', '--tool-name', 'add', '--tool-arg', 'a=2', 'b=3'],
    { structuredContent: { sum: 5 }, content: [text('{"sum":5}')] },
  ],
  [
    ['prompts/get', '--prompt-name', 'review', '--prompt-args', 'language=rust'],
    { messages: [{ role: 'user', content: text('Review this rust code.') }] },
  ],
  [['resources/templates/list'], { resourceTemplates: [named('city')] }],
  [
    ['resources/read', '--uri', TODAY],
    { contents: [{ uri: TODAY, mimeType: 'text/plain', text: 'Sunny.' }] },
  ],
] as const;

const WHO = [['tools/call', '--tool-name', 'who-am-i'], { content: [text('ada')] }] as const;

const rows = [
  ...ERRANDS.map((errand) => ['legacy', ...errand] as const),
  ...ERRANDS.map((errand) => ['modern', ...errand] as const),
  ...['legacy', 'auto', 'modern'].map((era) => [era, ...WHO] as const),
];

test.for(rows)(
  '§4.4 Inspector, protocol era %s: %j',
  SLOW,
  async ([era, errand, result], { signal }) => {
    const since = service.log.length;
    const { stdout } = await inspect(
      [
        ...['--header', `Authorization: Bearer ${token}`, '--protocol-era', era],
        ...['--method', ...errand],
      ],
      signal,
    );
    expect(JSON.parse(stdout)).toMatchObject({ result });
    const ours = { rpc: errand[0], era: era === 'legacy' ? 'session' : 'stateless' };
    expect(service.log.slice(since)).toContainEqual(expect.objectContaining(ours));
  },
);

test(
  '§5 Inspector: without a token it says that the service asks for a login',
  SLOW,
  async ({ signal }) => {
    await expect(inspect(['--method', 'tools/list'], signal)).rejects.toMatchObject({
      code: expect.any(Number),
      stderr: expect.stringContaining('auth_required'),
    });
  },
);
