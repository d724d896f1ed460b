// §18.5: the caller chooses of which kind an argument is; what compares unlike kinds fails the expression.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, startListingServer } from '../../support/upstreams/listing-server.ts';
import { decide, rule, tool } from '../../support/upstreams/rules.ts';

/** One of each kind, and those that look alike; JSON has one kind of number. */
const VALUES = [
  'true',
  'false',
  '1',
  '0',
  '7',
  '7.5',
  '-1e400',
  '"true"',
  '"7"',
  '"w"',
  '""',
  'null',
  '[]',
  '["w"]',
  '[true]',
  '[["w"]]',
  '{}',
  '{"w":true}',
  '{"$typeName":"google.protobuf.StringValue","value":"w"}',
] as const;
type Value = (typeof VALUES)[number];

/** Of all values but these the expression fails, or is false. */
const CASES: readonly (readonly [when: string, passing: readonly Value[]])[] = [
  ['args.v == true', ['true']],
  ['args.v != true', ['false']],
  ['!(args.v == true)', ['false']],
  ['true != args.v', ['false']],
  ['args.v == 7', ['7']],
  ['args.v == 7.0', ['7']],
  ['args.v == 7u', ['7']],
  ['args.v != 7', ['1', '0', '7.5']],
  ['args.v != 7.0', ['1', '0', '7.5']],
  ['!(args.v == 7)', ['1', '0', '7.5']],
  ['args.v < 7', ['1', '0']],
  ['!(args.v < 7)', ['7', '7.5']],
  ["args.v == 'w'", ['"w"']],
  ["args.v != 'w'", ['"true"', '"7"', '""']],
  ["'w' != args.v", ['"true"', '"7"', '""']],
  ["!(args.v in ['w'])", ['"true"', '"7"', '""']],
  ["args.v in ['w', 'x']", ['"w"']],
  ["!(args.v in ['w', 7])", []],
  ["!(args.v in [['w']])", ['[]']],
  ['args.v == null', ['null']],
  ['args.v != null', []],
  ['null != args.v', []],
  ['args.v == []', ['[]']],
  ["args.v != ['w']", ['[]']],
  ["'w' in args.v", ['["w"]']],
  ["!('w' in args.v)", ['[]']],
  ["!('w' in args['v'])", ['[]']],
  ["!args.v.exists(it, 'w' in it)", ['[]']],
  ["'v' in args && args.v == 'w'", ['"w"']],
  ["!('x' in args) && args.v == 'w'", ['"w"']],
  ["args.v.all(it, it != 'x')", ['[]', '["w"]']],
  ["!args.v.exists(it, it == 'x')", ['[]', '["w"]']],
  ["!args.v.exists_one(it, it == 'x')", ['[]', '["w"]']],
  ["[args.v].all(it, it != 'x')", ['"true"', '"7"', '"w"', '""']],
  ["!([args.v] == ['x'])", ['"true"', '"7"', '"w"', '""']],
  ["(args.v == 'w' ? 'no' : 'yes') == 'yes'", ['"true"', '"7"', '""']],
  ["!args.v.startsWith('w')", ['"true"', '"7"', '""']],
  ["!args.v.matches('w')", ['"true"', '"7"', '""']],
];

const toArgs = (value: Value): JsonObject => JSON.parse(`{"v":${value}}`);

describe.each(CASES)('%s', (when, passing) => {
  test.each(VALUES)('§18.5 with %s', async (value) => {
    const decision = await decide([rule({ when })], tool('t', { args: toArgs(value) }));
    expect(decision.kind).toBe(passing.includes(value) ? 'allowed' : 'denied');
  });
});

/** At the front door: as clients of either era call, a built-in tool and one of a server. */
describe('calls', () => {
  const builtIn = createLocalCatalog({
    tools: [
      defineTool({
        name: 'own',
        description: '',
        inputSchema: { type: 'object' },
        run: () => ({ content: [] }),
      }),
    ],
  });

  test.each([
    ['args.v != true', false, ['true', 'true', 1, [true], null]],
    ['args.v != 7.0', 8, [7, '7', [7], null]],
    ["!(args.v in ['w'])", 'r', ['w', ['w'], { w: true }, 1]],
    ["args.v.all(it, it.startsWith('/docs/'))", ['/docs/a'], [['/etc'], { '/docs/': '/etc' }, '/']],
  ])('§18.5 %s', async (when, passing, refused) => {
    const server = closeAfterTest(
      await startListingServer({
        tools: [buildTool('t')],
        capabilities: { tools: {} },
        answers: { 'tools/call': () => ({ result: { content: [] } }) },
      }),
    );
    const gateway = await startForTest({
      file: {
        mcpServers: { s: server.url },
        rules: [{ who: 'everyone', may: ['*'], when }],
      },
      builtIn,
    });
    const session = await gateway.open();
    for (const name of ['own', 's__t']) {
      const reached = async (v: unknown) => {
        const params = { name, arguments: { v } };
        const { json: inSession } = await gateway.call(session, 'tools/call', params);
        const { json: alone } = await stateless(gateway, 'tools/call', params);
        return [inSession, alone].map(({ error }) => error?.code ?? 'called');
      };
      expect(await reached(passing)).toEqual(['called', 'called']);
      for (const v of refused) expect(await reached(v)).toEqual([-32602, -32602]);
    }
    expect(server.count('tools/call')).toBe(2);
  });
});
