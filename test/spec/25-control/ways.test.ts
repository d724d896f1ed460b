// §25 to §27: whatever holds something back, nothing passes by any way: one table of (control × way), in both eras.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createLock, type Lock } from '../../../src/upstreams/lock/lock.ts';
import {
  type EraClient,
  openSessionEra,
  openStatelessEra,
} from '../../support/control/era-clients.ts';
import { createSpeakingCatalog } from '../../support/control/speaking-catalog.ts';
import { startSpeakingStateless } from '../../support/control/speaking-stateless.ts';
import { type Era, WAYS, type Way, type WayKind } from '../../support/control/ways.ts';
import { ALL_POINTS, writeGuard } from '../../support/guards/module-guard.ts';
import {
  CLIENT_MARK,
  SERVER_MARK,
  startSpeakingServer,
} from '../../support/guards/speaking-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

interface Control {
  readonly title: string;
  /** Members of the configuration file. */
  readonly file?: object;
  readonly lock?: Lock;
  readonly guard?: { readonly on: readonly string[]; readonly body?: string };
  /** What the client answers when it is asked. */
  readonly answer?: object;
  /** It looks at what servers say alone: they hear all the same. */
  readonly isOfAnswers?: boolean;
  /** In place of `/mcp`, and of the view that is searched. */
  readonly paths?: readonly [all: string, searched: string];
  /** What it holds back: the rest passes, and that is meant. */
  holds(way: Way): boolean;
}

const EVERYTHING = ['*', 'prompt:*', 'resource:*'];
const NOBODY = { groups: ['nobody'] };
const NOTHING = { tools: [], prompts: [], resources: [] };

/** Those that are searched have no tool listed beside the search. */
const VIEWS = {
  searched: { search: true },
  empty: NOTHING,
  'empty-searched': { ...NOTHING, search: true },
  other: { servers: ['quiet'] },
  'other-searched': { servers: ['quiet'], search: true },
};

const REQUESTS: readonly string[] = [
  'tools/call',
  'prompts/get',
  'resources/read',
  'resources/subscribe',
  'completion/complete',
];

const asking = (ask: string) => [
  { who: 'everyone', may: EVERYTHING },
  { who: 'everyone', may: ['*'], ask },
];

const isOneOf =
  (...kinds: readonly WayKind[]) =>
  ({ kind }: Way) =>
    kinds.includes(kind);

const CONTROLS: readonly Control[] = [
  { title: 'nothing', holds: () => false },
  {
    title: 'rules that allow nobody anything',
    file: { rules: [{ who: NOBODY, may: EVERYTHING }] },
    // What an author says of the gateway itself is for everybody.
    holds: ({ kind }) => kind !== 'instructions',
  },
  {
    title: 'rules that look at arguments, which nobody has',
    file: {
      rules: [{ when: "args.said == 'something else' && args.a == 'b'", may: EVERYTHING }],
    },
    // In lists, what depends on arguments is there, and so are values for these arguments.
    holds: isOneOf('tools', 'prompts', 'resources', 'lists of resources'),
  },
  {
    title: 'a view without anything',
    paths: ['/mcp/empty', '/mcp/empty-searched'],
    // What an author says of the gateway itself is for everybody.
    holds: ({ kind }) => kind !== 'instructions',
  },
  {
    title: 'a view of another server',
    paths: ['/mcp/other', '/mcp/other-searched'],
    holds: () => true,
  },
  { title: 'a guard that refuses all', guard: { on: ALL_POINTS }, holds: () => true },
  {
    title: 'a guard that fails at all',
    guard: { on: ALL_POINTS, body: "throw new Error('No.');" },
    holds: () => true,
  },
  {
    title: 'a guard that refuses requests',
    guard: { on: REQUESTS },
    holds: isOneOf('tools', 'prompts', 'completions of prompts', 'resources'),
  },
  {
    title: 'a guard that refuses what servers say',
    guard: { on: ALL_POINTS.filter((point) => !REQUESTS.includes(point)) },
    isOfAnswers: true,
    holds: () => true,
  },
  {
    title: 'a user who declines',
    file: { rules: asking('user') },
    answer: { action: 'decline' },
    holds: isOneOf('tools'),
  },
  {
    title: 'a user who accepts without saying what',
    file: { rules: asking('user') },
    answer: { action: 'accept', content: { name: 'once' } },
    holds: isOneOf('tools'),
  },
  {
    title: 'a guard that refuses in place of operators',
    file: { rules: asking('operator') },
    guard: { on: ['approval'] },
    holds: isOneOf('tools'),
  },
  {
    title: 'a lock that approves nothing',
    lock: createLock({ servers: new Map() }),
    // It is about servers, and not about their resources.
    holds: ({ kind, server }) =>
      server !== 'own' &&
      server !== '' &&
      (kind === 'tools' || kind === 'prompts' || kind === 'completions of prompts'),
  },
];

interface Speaking {
  readonly gateway: CatalogGateway;
  heard(): string;
}

const REFUSE = "return { decision: 'refuse', message: 'No.' };";

async function start({ file = {}, lock, guard }: Control): Promise<Speaking> {
  const guards = guard && [
    { name: 'all', on: guard.on, use: await writeGuard(guard.body ?? REFUSE) },
  ];
  const folder = closeAfterTest(await createTemporaryFolder());
  const localPath = join(folder.path, 'heard');
  writeFileSync(localPath, '');
  const it = closeAfterTest(await startSpeakingServer());
  const now = closeAfterTest(await startSpeakingStateless());
  const quiet = await serveForTest({ tools: [buildTool('say')] });
  const heardByOwn: string[] = [];
  const program = fileURLToPath(
    new URL('../../support/control/speaking-stdio.mjs', import.meta.url),
  );
  const gateway = await startForTest({
    file: {
      mcpServers: {
        it: it.url,
        local: { command: process.execPath, args: [program, localPath] },
        now: now.url,
        quiet: quiet.url,
      },
      views: VIEWS,
      ...(guards && { guards }),
      ...file,
    },
    ...(lock && { lock }),
    builtIn: createSpeakingCatalog(heardByOwn),
    env: { MCP_STREAMS: 'true' },
  });
  return {
    gateway,
    heard: () =>
      [...it.heard, ...now.heard, ...heardByOwn, readFileSync(localPath, 'utf8')].join('\n'),
  };
}

const OPEN: Readonly<Record<Era, typeof openSessionEra>> = {
  session: openSessionEra,
  stateless: openStatelessEra,
};

/** What came through: nothing where it was held. */
async function goBy(
  way: Way,
  client: EraClient,
  { heard }: Speaking,
  isOfAnswers = false,
): Promise<readonly string[]> {
  const before = heard().length;
  const told = await way.go(client);
  const sent = heard().slice(before);
  return [
    ...(told.includes(SERVER_MARK) ? [`the client was told ${told}`] : []),
    ...(!isOfAnswers && sent.includes(CLIENT_MARK) ? [`a server heard ${sent}`] : []),
  ];
}

describe.each(['session', 'stateless'] as const)('%s era', (era) => {
  test.each(CONTROLS)('§25 nothing passes $title', async (control) => {
    const speaking = await start(control);
    const [all, searched] = control.paths ?? ['/mcp', '/mcp/searched'];
    const answered = control.answer && { answer: control.answer };
    const clients = {
      all: await OPEN[era](speaking.gateway, { path: all, ...answered }),
      searched: await OPEN[era](speaking.gateway, { path: searched, ...answered }),
    };
    // Lists are there before what depends on them.
    for (const { ask } of Object.values(clients)) await ask('tools/list');
    const passed: string[] = [];
    const held: string[] = [];
    for (const way of WAYS.filter(({ eras }) => eras.includes(era))) {
      const client = way.isSearched ? clients.searched : clients.all;
      const found = await goBy(way, client, speaking, control.isOfAnswers);
      if (control.holds(way)) passed.push(...found.map((what) => `${way.title}: ${what}`));
      // Else the way would prove nothing.
      else if (found.length === 0) held.push(way.title);
    }
    expect(passed).toEqual([]);
    if (control.title === 'nothing') expect(held).toEqual([]);
  });
});
