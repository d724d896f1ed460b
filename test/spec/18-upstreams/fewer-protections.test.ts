// §18.1: a file that protects less than the one that is served is not loaded while the gateway runs, unless it says so.
import { expect, test } from 'vitest';
import {
  readWorkerEnvironment,
  writeWorkerEnvironment,
} from '../../../src/cli/serve/workers/worker-process.ts';
import { describeProtection, findLosses } from '../../../src/cli/setup/protection.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

const AT = { url: 'http://127.0.0.1:9/mcp' };
const SERVERS = { files: AT, wiki: AT };
const ALL = { who: 'everyone', may: ['*'] };
const STAFF = { groups: ['staff'] };
const ask = (may: readonly string[], more: object = {}) => ({
  who: 'everyone',
  may,
  ask: 'page',
  ...more,
});
const guard = (more: object = {}) => ({
  name: 'keys',
  on: ['tools/call', 'tools/result'],
  use: { builtIn: 'secrets' },
  ...more,
});
const LINKS = {
  name: 'links',
  on: ['tools/result'],
  use: { builtIn: 'links', hosts: ['a.example'] },
};

/** Patterns that fit nothing, before and now. */
interface Idle {
  readonly before?: readonly string[];
  readonly now?: readonly string[];
}

async function compare(before: object, now: object, idle: Idle = {}): Promise<readonly string[]> {
  const setup = async (file: object) => ({
    file: await readFile({ mcpServers: SERVERS, ...file }),
  });
  return findLosses(
    describeProtection(await setup(before)),
    await setup(now),
    (_, pattern) => idle.before?.includes(pattern) === true,
    (_, pattern) => idle.now?.includes(pattern) === true,
  );
}

const LIMITED = { who: STAFF, when: "args.path.startsWith('/docs/')", may: ['files__*'] };

test.each<[string, object, object, RegExp, Idle?]>([
  [
    'an ask is gone',
    { rules: [ALL, ask(['files__write'])] },
    { rules: [ALL] },
    /^The "ask" for "files__write" \(before: mcp\.json:\d+, rules\[1\]\) is gone or matches nothing/,
  ],
  [
    'an ask is of another tool',
    { rules: [ALL, ask(['files__write'])] },
    { rules: [ALL, ask(['files__wite'])] },
    /The "ask" for "files__write"/,
  ],
  [
    'an ask is of fewer tools',
    { rules: [ALL, ask(['files__*'])] },
    { rules: [ALL, ask(['files__w*', 'files__?'])] },
    /The "ask" for "files__\*"/,
  ],
  [
    'an ask fits nothing any more',
    { rules: [ALL, ask(['files__write'])] },
    { rules: [ALL, ask(['files__write'])] },
    /The "ask" for "files__write"/,
    { now: ['files__write'] },
  ],
  [
    'an ask is answered by the user in place of an operator',
    { rules: [ALL, ask(['*'])] },
    { rules: [ALL, ask(['*'], { ask: 'user' })] },
    /The "ask" for "\*"/,
  ],
  [
    'an ask is for fewer people',
    { rules: [ALL, ask(['*'])] },
    { rules: [ALL, ask(['*'], { who: STAFF })] },
    /The "ask" for "\*"/,
  ],
  [
    'an ask is for fewer groups',
    { rules: [ALL, ask(['*'], { who: { groups: ['a', 'b'] } })] },
    { rules: [ALL, ask(['*'], { who: { groups: ['a'] } })] },
    /The "ask" for "\*"/,
  ],
  [
    'an ask has a condition',
    { rules: [ALL, ask(['*'])] },
    { rules: [ALL, ask(['*'], { when: 'args.force' })] },
    /The "ask" for "\*"/,
  ],
  [
    'a rule has lost its condition',
    { rules: [LIMITED] },
    { rules: [{ who: STAFF, may: ['files__*'] }] },
    /^The limit "when" of a rule \(before: mcp\.json:\d+, rules\[0\]\) is gone/,
  ],
  [
    'a rule has lost whom it is about',
    { rules: [LIMITED] },
    { rules: [{ ...LIMITED, who: 'everyone' }] },
    /^The limit "who\.groups"/,
  ],
  [
    'a rule has lost a member of who',
    { rules: [{ who: { ...STAFF, scopes: ['w'] }, may: ['*'] }] },
    { rules: [{ who: STAFF, may: ['*'] }] },
    /^The limit "who\.scopes"/,
  ],
  [
    'a rule has lost its condition for a part of its tools',
    { rules: [LIMITED] },
    {
      rules: [
        { ...LIMITED, may: ['files__r*'] },
        { who: STAFF, may: ['files__w*'] },
      ],
    },
    /^The limit "when"/,
  ],
  [
    'a rule has lost its condition for one tool',
    { rules: [LIMITED, { who: STAFF, may: ['files__list'] }] },
    { rules: [{ who: STAFF, may: ['files__list', 'files__write'] }] },
    /^The limit "when"/,
  ],
  [
    'one of two guards of the same kind is gone',
    { guards: [guard(), guard({ name: 'other' })] },
    { guards: [guard({ name: 'other' })] },
    /^The guard keys is gone\./,
  ],
  [
    'a guard of several is gone',
    { guards: [guard(), LINKS] },
    { guards: [guard()] },
    /^The guard links is gone\./,
  ],
  [
    'a guard looks at fewer points',
    { guards: [guard()] },
    { guards: [guard({ on: ['tools/call'] })] },
    /^The guard keys would check less than before \(tools\/result\)/,
  ],
  [
    'a guard looks at fewer tools',
    { guards: [guard()] },
    { guards: [guard({ tools: ['files__*'] })] },
    /^The guard keys would check less than before \(tools\/call, tools\/result\)/,
  ],
  [
    'a guard looks at fewer servers',
    { guards: [guard({ servers: ['files', 'wiki'] })] },
    { guards: [guard({ servers: ['wiki'] })] },
    /^The guard keys would check less/,
  ],
  [
    'a guard is passed where it fails',
    { guards: [guard()] },
    { guards: [guard({ onError: 'pass' })] },
    /^The guard keys would check less/,
  ],
  [
    'a guard fits nothing any more',
    { guards: [guard({ tools: ['files__*'] })] },
    { guards: [guard({ tools: ['files__*'] })] },
    /^The guard keys would check less/,
    { now: ['files__*'] },
  ],
])(
  '§18.1 file: it is a loss where %s, and none where the file says that it may be',
  async (_, before, now, said, idle) => {
    expect(await compare(before, now, idle)).toEqual([expect.stringMatching(said)]);
    expect((await compare(before, now, idle))[0]).toMatch(/write "allowFewerProtections": true /);
    expect(await compare(before, { ...now, allowFewerProtections: true }, idle)).toEqual([]);
    expect(await compare(before, before, idle?.now && { before: idle.now, now: idle.now })).toEqual(
      [],
    );
  },
);

test.each<[string, object, object, Idle?]>([
  [
    'nobody may call it any more',
    { rules: [ask(['files__write'])] },
    { rules: [{ who: 'everyone', may: ['wiki__*'] }] },
  ],
  [
    'what was asked about fitted nothing',
    { rules: [ALL, ask(['files__wite'])] },
    { rules: [ALL, ask(['files__write'])] },
    { before: ['files__wite'] },
  ],
  [
    'more is asked about, by more',
    { rules: [ALL, ask(['files__w*'], { who: STAFF })] },
    { rules: [ALL, ask(['files__*'], { ask: 'operator' })] },
  ],
  [
    'the condition of an ask is another',
    { rules: [ALL, ask(['*'], { when: 'args.a > 1.0' })] },
    { rules: [ALL, ask(['*'], { when: 'args.a > 2.0' })] },
  ],
  [
    'names begin otherwise, and so does the pattern',
    { rules: [ALL, ask(['files__write'])] },
    { mcpServers: { ...SERVERS, files: { ...AT, prefix: 'f' } }, rules: [ALL, ask(['f__write'])] },
  ],
  [
    'the server is gone',
    { rules: [ALL, ask(['files__write'])] },
    { mcpServers: { wiki: AT }, rules: [ALL] },
  ],
  [
    'the built-in catalogue is gone, which alone had it',
    { rules: [ALL, ask(['service_ping'])] },
    { builtIn: false, rules: [ALL, ask(['service_ping'])] },
    { now: ['service_ping'] },
  ],
  ['"rules" is "everyone"', { rules: [LIMITED, ask(['files__write'])] }, { rules: 'everyone' }],
  [
    'a rule with a condition allows less, and another allowed the rest before',
    { rules: [LIMITED, { who: STAFF, may: ['files__list'] }] },
    {
      rules: [
        { ...LIMITED, may: ['files__r*'] },
        { who: STAFF, may: ['files__list', 'wiki__*'] },
      ],
    },
  ],
  ['a rule is gone', { rules: [ALL, LIMITED] }, { rules: [ALL] }],
  [
    'a rule allows more to others',
    { rules: [LIMITED] },
    { rules: [LIMITED, { who: { groups: ['ops'] }, may: ['*'] }] },
  ],
  [
    'a rule has other groups',
    { rules: [{ who: STAFF, may: ['*'] }] },
    { rules: [{ who: { groups: ['staff', 'ops'] }, may: ['*'] }] },
  ],
  [
    'a guard has another name',
    { guards: [guard()] },
    { guards: [guard({ name: 'other' }), LINKS] },
  ],
  [
    'a guard is another',
    { guards: [guard()] },
    { guards: [guard({ use: { builtIn: 'size', maxBytes: 9 } })] },
  ],
  [
    'the server of a guard is gone',
    { guards: [guard({ servers: ['files', 'wiki'] })] },
    { mcpServers: { wiki: AT }, guards: [guard({ servers: ['wiki'] })] },
  ],
])('§18.1 file: it is no loss where %s', async (_, before, now, idle) => {
  expect(await compare(before, now, idle)).toEqual([]);
});

test('§18.1 file: a worker is told what the others serve, as far as the system takes it', async () => {
  const tell = async (file: object) => {
    const served = describeProtection({ file: await readFile({ mcpServers: SERVERS, ...file }) });
    const env = writeWorkerEnvironment(served);
    for (const value of Object.values(env)) expect(value.length).toBeLessThan(128 * 1024 - 1000);
    const told = readWorkerEnvironment(env).served;
    if (told === undefined) throw new Error('It was told nothing');
    return told;
  };
  const next = { file: await readFile({ mcpServers: SERVERS, rules: [ALL] }) };
  expect(findLosses(await tell({ rules: [ALL, ask(['files__write'])] }), next)).toEqual([
    expect.stringMatching(/^The "ask" for "files__write"/),
  ]);
  const apart = {
    rules: [
      { who: { groups: ['ops'] }, may: ['*'] },
      { who: { ...STAFF, scopes: ['w'] }, may: ['files__write'] },
    ],
  };
  const same = { file: await readFile({ mcpServers: SERVERS, ...apart }) };
  expect(findLosses(await tell(apart), same)).toEqual([]);
  const many = Array.from({ length: 400 }, (_, at) => `files__${at}_${'x'.repeat(400)}`);
  const told = await tell({ rules: [ALL, ask(many)] });
  expect(findLosses(told, next)).toEqual([]);
  expect(findLosses(told, { file: await readFile({ mcpServers: SERVERS }) })).toEqual([
    expect.stringMatching(/^All rules are gone/),
  ]);
});
