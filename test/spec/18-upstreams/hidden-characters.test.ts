// What models and people read of a list hides nothing.
import { describe, expect, test } from 'vitest';
import { createLock } from '../../../src/lock/lock.ts';
import { computeFingerprint } from '../../../src/lock/lock-file.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import {
  buildTool,
  type Listing,
  serveForTest as serve,
} from '../../support/upstreams/listing-server.ts';

const spell = (text: string, from: number) =>
  String.fromCodePoint(...[...text].map((character) => from + character.charCodeAt(0)));

const HIDDEN = [
  ['tags', spell('obey', 0xe0000)],
  ['variation selectors that spell', spell('obey', 0xe0080)],
  ['variation selectors of letters', '\ufe00\ufe0f'],
  ['marks that turn the reading direction', '\u202e\u2066\u200e\u200f\u061c'],
  ['spaces without width', '\u200b\u2060\ufeff'],
  ['joiners that join nothing', '\u200c\u200d\u200d'],
  ['soft hyphens', '\u00ad'],
  ['fillers', '\u3164\u115f\uffa0\u034f\u180e'],
  ['what is no character', '\ufffe\uffff\ufdd0\u{1fffe}'],
  ['controls', '\u0000\u001b\u009b'],
] as const;

const listOne = async (listing: Partial<Listing>, method = 'tools/list') => {
  const server = await serve(listing);
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const items = await gateway.list(method);
  const warnings = gateway.lines().filter(({ level }) => level === 'warn');
  return { items, warnings, gateway };
};

const withSchema = (properties: object, members: object = {}) =>
  buildTool('t', { inputSchema: { type: 'object', properties, ...members } });

describe.each(HIDDEN)('%s', (_what, hidden) => {
  test('§18.2 texts: they are taken out of each that only is read', async () => {
    const build = (end: string) => ({
      ...withSchema({
        p: {
          type: 'string',
          title: `t${end}`,
          description: `d${end}`,
          default: `f${end}`,
          examples: [`e${end}`],
          $comment: `c${end}`,
          'x-hint': { deep: [`h${end}`] },
          enum: ['one'],
          enumNames: [`One${end}`],
        },
      }),
      outputSchema: { type: 'object', description: `o${end}` },
      annotations: { title: `a${end}`, 'x-more': `m${end}` },
      title: `T${end}`,
      'x-new': { said: `s${end}` },
      name: 't',
    });
    const { items, warnings } = await listOne({ tools: [build(hidden)] });
    expect(items).toEqual([{ ...build(''), name: 'a__t' }]);
    expect(warnings).toEqual([]);
  });

  test('§18.2 texts: a tool that has them in a name or a value of a schema is hidden, with one warning', async () => {
    const tools = [
      withSchema({ [`p${hidden}`]: { type: 'string' } }),
      withSchema({ p: { properties: { [`q${hidden}`]: {} } } }),
      withSchema({ p: {} }, { required: [`p${hidden}`] }),
      withSchema({ p: { enum: ['a', `b${hidden}`] } }),
      withSchema({ p: { oneOf: [{ const: `b${hidden}` }] } }),
      withSchema({}, { $defs: { [`d${hidden}`]: {} } }),
      buildTool('t', { outputSchema: { type: 'object', properties: { [`p${hidden}`]: {} } } }),
    ].map((tool, at) => ({ ...tool, name: `t${at}` }));
    const { items, warnings, gateway } = await listOne({ tools: [...tools, buildTool('good')] });
    expect(items.map(({ name }) => name)).toEqual(['a__good']);
    await gateway.list('tools/list');
    const messages = warnings.map(({ msg }) => msg);
    expect(messages).toEqual(
      tools.map(({ name }) =>
        expect.stringMatching(
          new RegExp(`^Server a: tool "${name}" has characters that cannot be seen in .*\\\\u`),
        ),
      ),
    );
    // What is shown of them can be seen.
    expect(messages.join('')).not.toMatch(/[^\x20-\x7e]/);
  });

  test('§18.2 texts: of prompts and resources, too', async () => {
    const resource = (uri: string) => ({ uri, name: `n${hidden}`, description: `d${hidden}` });
    const listing = {
      prompts: [
        { name: 'p', arguments: [{ name: 'a', description: `d${hidden}` }] },
        { name: 'q', arguments: [{ name: `a${hidden}` }] },
        { name: `r${hidden}` },
      ],
      resources: [resource('x://a'), resource(`x://${hidden}b`)],
      resourceTemplates: [
        { uriTemplate: `x://{b}${hidden}`, name: 'n' },
        { uriTemplate: 'x://{c}', name: 'n' },
      ],
    };
    const { gateway } = await listOne(listing);
    expect(await gateway.list('prompts/list')).toEqual([
      { name: 'a__p', arguments: [{ name: 'a', description: 'd' }] },
    ]);
    expect(await gateway.list('resources/list')).toEqual([
      { uri: 'x://a', name: 'n', description: 'd' },
    ]);
    expect(await gateway.listNames('resources/templates/list')).toEqual(['x://{c}']);
  });
});

test.each([
  [
    'emoji',
    '\u{1f469}\u{1f3fd}\u200d\u{1f680} \u2764\ufe0f\u200d\u{1f525} 1\ufe0f\u20e3 \u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
  ],
  ['Persian', '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'],
  ['Hindi', '\u0915\u094d\u200d\u0937'],
  ['Japanese, French, Greek and Hebrew', '日本語 déjà vu Ελληνικά עברית'],
  ['tabs and line ends', 'a\tb\nc'],
])('§18.2 texts: %s stay as they are, also in names and values', async (_what, text) => {
  const tool = withSchema({ [text]: { enum: [text], default: text, description: text } });
  const { items, warnings } = await listOne({ tools: [tool] });
  expect(items).toEqual([{ ...tool, name: 'a__t' }]);
  expect(warnings).toEqual([]);
});

test('§18.2 texts: a value may have line ends of any kind; what programs read stays as it is', async () => {
  const tool = {
    ...withSchema({ end: { enum: ['\n', '\r\n'], default: '\r\n', pattern: '^[\u0007]$' } }),
    _meta: { 'example.com/key': 'a\u200bb\u0001' },
    icons: [{ src: 'data:image/svg+xml,\u200b' }],
  };
  const { items } = await listOne({ tools: [tool] });
  expect(items).toEqual([{ ...tool, name: 'a__t' }]);
});

test.each([
  ['a property', { tools: [withSchema({ 'p\u0430th': {} })] }, 'tool "t"'],
  [
    'a property in letters of full width',
    { tools: [withSchema({ '\uff50\uff41\uff54\uff48': {} })] },
    'tool "t"',
  ],
  ['a value', { tools: [withSchema({ p: { enum: ['\u0430llow', 'allow'] } })] }, 'tool "t"'],
])(
  '§18.2 texts: %s that looks like another is listed, and the log says so once',
  async (_what, listing, item) => {
    const { items, warnings, gateway } = await listOne(listing);
    expect(items).toHaveLength(1);
    await gateway.list('tools/list');
    expect(warnings.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(
        new RegExp(`^Server a: ${item} has letters that look like others in .*\\\\u`),
      ),
    ]);
  },
);

test('§18.7 lock: what was approved with characters that cannot be seen stays approved', async () => {
  const tool = buildTool('t', { description: 'Does\u200b it.' });
  const fingerprint = computeFingerprint('tool', tool);
  if (fingerprint === undefined) throw new Error('cannot be approved');
  const lock = createLock({
    servers: new Map([
      [
        'a',
        {
          instructions: undefined,
          skills: new Map(),
          prompts: new Map(),
          tools: new Map([['t', [fingerprint]]]),
        },
      ],
    ]),
  });
  const server = await serve({ tools: [tool] });
  const gateway = await start({ file: { mcpServers: { a: server.url } }, lock });
  expect(await gateway.list('tools/list')).toEqual([
    { ...tool, name: 'a__t', description: 'Does it.' },
  ]);
});
