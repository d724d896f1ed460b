// §4.4: every wrong member is named, in the way of the revision.
import { beforeAll, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const run = () => ({ content: [{ type: 'text', text: 'ran' }] }) as const;

const form = defineTool({
  name: 'form',
  description: 'Takes all kinds of members.',
  inputSchema: {
    type: 'object',
    properties: {
      city: { type: 'string', minLength: 2 },
      days: { type: 'integer', minimum: 1 },
      units: { enum: ['metric', 'imperial'] },
      kind: { const: 'forecast' },
      code: { type: 'string', pattern: '^[a-z]+$', maxLength: 10 },
      when: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      place: {
        oneOf: [
          { type: 'object', properties: { zip: { type: 'string' } }, required: ['zip'] },
          { type: 'object', properties: { lat: { type: 'number' } }, required: ['lat'] },
        ],
      },
      tags: { type: 'array', items: { type: 'string' }, maxItems: 5000 },
      both: { type: ['boolean', 'null'] },
      nested: {
        type: 'object',
        properties: { maxResults: { type: 'integer' } },
        additionalProperties: false,
      },
      if_a: { if: { not: { const: 'a' } }, else: { const: 'b' } },
    },
    required: ['city'],
    additionalProperties: false,
  },
  run,
});

const newer = defineTool({
  name: 'newer',
  description: 'Has a schema of 2020-12.',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { one: { type: 'string' }, two: { type: 'number' } },
    required: ['one', 'two'],
    unevaluatedProperties: false,
  },
  run,
});

const catalog = createLocalCatalog({ tools: [form, newer] });

const gateway = useGateway({ deps: { catalog }, env: { MAX_BODY_VALUES: '100000' } });

const invocations = async () =>
  (await gateway.request({ path: '/metrics' })).text.match(/^mcp_tool_invocations_total\{.*$/gm) ??
  [];

/** Three members are wrong, each in its way. */
const WRONG = { cty: 'Rome', days: 'two', units: 'metrics' };
const NAMED = ['arguments/city', 'arguments/days', 'arguments/units', '"cty"'];

describe('each revision reports all wrong arguments in its own way', () => {
  test.each(['2025-06-18', '2025-03-26', '2024-11-05', '0.1.0'])(
    '§4.4 a session of %s: -32602 with all of it in data.details',
    async (protocolVersion) => {
      const client = await openClient(gateway, { protocolVersion });
      const before = await invocations();
      const answer = await client.ask('tools/call', { name: 'form', arguments: WRONG });
      expect(answer).toMatchObject({ id: 1, error: { code: -32602, message: 'Invalid params' } });
      for (const name of NAMED) expect(answer.error.data.details).toContain(name);
      expect(await invocations()).toEqual(before);
    },
  );

  test('§4.4 a session of 2025-11-25: a result with isError, no invocation', async () => {
    const client = await openClient(gateway, { protocolVersion: '2025-11-25' });
    const before = await invocations();
    const { error, result } = await client.ask('tools/call', { name: 'form', arguments: WRONG });
    expect(error).toBeUndefined();
    expect(result).toEqual({
      content: [{ type: 'text', text: expect.any(String) }],
      isError: true,
    });
    for (const name of NAMED) expect(result.content[0].text).toContain(name);
    expect(await invocations()).toEqual(before);
  });

  test('§4.4 the stateless era: a result with isError, no invocation', async () => {
    const before = await invocations();
    const { status, json } = await stateless(gateway, 'tools/call', {
      name: 'form',
      arguments: WRONG,
    });
    expect(status).toBe(200);
    expect(json.result).toMatchObject({
      resultType: 'complete',
      content: [{ type: 'text', text: expect.any(String) }],
      isError: true,
    });
    for (const name of NAMED) expect(json.result.content[0].text).toContain(name);
    expect(await invocations()).toEqual(before);
  });

  test.each(['2025-11-25', '2025-06-18'])(
    '§4.4 a session of %s: an unknown tool, and arguments that are no object, are -32602',
    async (protocolVersion) => {
      const client = await openClient(gateway, { protocolVersion });
      const rows = [
        { params: { name: 'forms' }, message: 'Unknown tool: forms. Did you mean form?' },
        { params: { name: 'form', arguments: 'Rome' }, message: 'Invalid params' },
      ];
      for (const { params, message } of rows) {
        const { error } = await client.ask('tools/call', params);
        expect(error).toMatchObject({ code: -32602, message });
      }
    },
  );
});

describe('the report on an argument lets a model correct it', () => {
  let client: SessionClient;
  beforeAll(async () => {
    client = await openClient(gateway);
  });

  /** The lines of the answer. */
  async function problems(args: object, name = 'form'): Promise<readonly string[]> {
    const { result } = await client.ask('tools/call', { name, arguments: args });
    expect(result.isError).toBe(true);
    const [first, ...lines] = result.content[0].text.split('\n');
    expect(first).toBe("The arguments do not match the tool's input schema.");
    return lines;
  }

  const ROME = { city: 'Rome' };

  test.each<{ args: object; said: readonly string[] }>([
    { args: {}, said: ['arguments/city is missing; it must be a string'] },
    { args: { city: 5 }, said: ['arguments/city must be a string, not 5'] },
    { args: { city: null }, said: ['arguments/city must be a string, not null'] },
    { args: { city: ['Rome'] }, said: ['arguments/city must be a string, not an array'] },
    { args: { city: 'R' }, said: ['arguments/city must NOT have fewer than 2 characters'] },
    { args: { ...ROME, days: 'two' }, said: ['arguments/days must be an integer, not a string'] },
    { args: { ...ROME, days: 1.5 }, said: ['arguments/days must be an integer, not 1.5'] },
    { args: { ...ROME, days: 0 }, said: ['arguments/days must be >= 1'] },
    {
      args: { ...ROME, both: {} },
      said: ['arguments/both must be a boolean or null, not an object'],
    },
    {
      args: { ...ROME, units: 'metrics' },
      said: ['arguments/units must be one of "metric", "imperial"'],
    },
    { args: { ...ROME, kind: 'x' }, said: ['arguments/kind must be "forecast"'] },
    { args: { ...ROME, code: 'A' }, said: ['arguments/code must match pattern "^[a-z]+$"'] },
    {
      args: { ...ROME, tags: ['a', 1, 'b', true] },
      said: [
        'arguments/tags/1 must be a string, not 1',
        'arguments/tags/3 must be a string, not true',
      ],
    },
    {
      args: { ...ROME, nested: { max_results: 5 } },
      said: ['arguments/nested must not have the member "max_results"; did you mean "maxResults"?'],
    },
    {
      args: { ...ROME, xyz: 1, dyas: 1 },
      said: [
        'arguments must not have the member "xyz"; it may have city, days, units, kind, code, when, place, tags, both, nested, if_a',
        'arguments must not have the member "dyas"; did you mean "days"?',
      ],
    },
    {
      args: { ...ROME, when: 5 },
      said: ['arguments/when must be a string, not 5, or must be null, not 5'],
    },
    {
      args: { ...ROME, place: {} },
      said: [
        'arguments/place has none of its forms: arguments/place/zip is missing; it must be a string, or arguments/place/lat is missing; it must be a number',
      ],
    },
    {
      args: { ...ROME, place: { zip: '1', lat: 1 } },
      said: ['arguments/place must have exactly one of its forms'],
    },
    { args: { ...ROME, if_a: 'a' }, said: ['arguments/if_a must be "b"'] },
  ])('§4.4 $args', async ({ args, said }) => {
    expect(await problems(args)).toEqual(said);
  });

  test('§4.4 a schema of 2020-12 likewise', async () => {
    expect(await problems({ one: 1, tow: 2 }, 'newer')).toEqual([
      'arguments/two is missing; it must be a number',
      'arguments/one must be a string, not 1',
      'arguments must not have the member "tow"; did you mean "two"?',
    ]);
  });

  test('§4.4 twenty are named at most, and each is short', async () => {
    const args = {
      ...ROME,
      tags: [...new Array(100).fill(1)],
      [`x${'y'.repeat(5000)}`]: 1,
    };
    const said = await problems(args);
    expect(said).toHaveLength(21);
    expect(said.at(-1)).toBe('and more');
    for (const line of said) expect(line.length).toBeLessThan(400);
    expect(said.join('\n').length).toBeLessThan(8192);
  });

  const NOT_ALL = /^There may be more/;

  test('§4.4 very many values are looked at up to the first that is wrong', async () => {
    const said = await problems({ ...ROME, days: 'two', tags: new Array(4000).fill(1) });
    expect(said).toEqual([
      'arguments/days must be an integer, not a string',
      expect.stringMatching(NOT_ALL),
    ]);
  });

  test('§4.4 a pattern is not tried on text that its schema refuses for its length', async () => {
    // In one run over all errors a slow pattern would meet what maxLength is there to keep from it.
    const code = `${'a'.repeat(100_000)}A`;
    expect(await problems({ ...ROME, code, units: 'x' })).toEqual([
      'arguments/units must be one of "metric", "imperial"',
      expect.stringMatching(NOT_ALL),
    ]);
    expect(await problems({ ...ROME, code })).toEqual([
      'arguments/code must NOT have more than 10 characters',
      expect.stringMatching(NOT_ALL),
    ]);
  });

  test('§4.4 long text of other members is in nobody’s way', async () => {
    expect(await problems({ city: 'R'.repeat(500_000), days: 'two', dais: 1 })).toEqual([
      'arguments must not have the member "dais"; it may have city, days, units, kind, code, when, place, tags, both, nested, if_a',
      'arguments/days must be an integer, not a string',
    ]);
  });
});
