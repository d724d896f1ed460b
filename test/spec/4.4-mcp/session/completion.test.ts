// completion/complete.
import { beforeAll, describe, expect, test } from 'vitest';
import { createLocalCatalog, definePrompt, defineResourceTemplate } from '../../../../src/index.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const CITIES: Readonly<Record<string, readonly string[]>> = {
  France: ['Paris', 'Perpignan', 'Lyon'],
  Italy: ['Pisa', 'Roma'],
};
const beginningWith = (typed: string, all: readonly string[]) =>
  all.filter((one) => one.startsWith(typed));

const catalog = createLocalCatalog({
  prompts: [
    definePrompt({
      name: 'travel',
      description: 'Completes countries, and cities of the country.',
      arguments: [
        {
          name: 'country',
          description: 'Country.',
          required: true,
          complete: (typed) => beginningWith(typed, Object.keys(CITIES)),
        },
        {
          name: 'city',
          description: 'City.',
          required: true,
          complete: async (typed, { country = '' }) => beginningWith(typed, CITIES[country] ?? []),
        },
        { name: 'wish', description: 'Completes nothing.', required: false },
        {
          name: 'number',
          description: 'As many as are asked for.',
          required: false,
          complete: (typed) => Array.from({ length: Number(typed) }, (_, at) => String(at)),
        },
        {
          name: 'known',
          description: 'Says what it knows.',
          required: false,
          complete: (_typed, known, { user }) => [JSON.stringify(known), user?.sub ?? ''],
        },
        {
          name: 'broken',
          description: 'Throws.',
          required: false,
          complete: () => {
            throw new Error('a secret nobody may see');
          },
        },
      ],
      get: () => ({ messages: [] }),
    }),
    definePrompt({
      name: 'silent',
      description: '.',
      arguments: [],
      get: () => ({ messages: [] }),
    }),
  ],
  resourceTemplates: [
    defineResourceTemplate({
      uriTemplate: 'city://{country}/{name}',
      name: 'city',
      description: 'Completes the name.',
      complete: {
        name: (typed, { country = '' }) => beginningWith(typed, CITIES[country] ?? []),
      },
      read: () => undefined,
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const complete = async (params?: unknown) =>
  (await gateway.call(session, 'completion/complete', params)).json;

const TRAVEL = { type: 'ref/prompt', name: 'travel' };
const CITY = { type: 'ref/resource', uri: 'city://{country}/{name}' };
const nothing = { values: [], total: 0, hasMore: false };
const whole = (...values: readonly string[]) => ({
  values,
  total: values.length,
  hasMore: false,
});

describe('completion/complete', () => {
  test.each([
    { ref: TRAVEL, name: 'country', value: '', completion: whole('France', 'Italy') },
    { ref: TRAVEL, name: 'country', value: 'I', completion: whole('Italy') },
    { ref: TRAVEL, name: 'country', value: 'x', completion: nothing },
    { ref: TRAVEL, name: 'city', value: 'P', completion: nothing },
    {
      ref: TRAVEL,
      name: 'city',
      value: 'P',
      known: { country: 'France' },
      completion: whole('Paris', 'Perpignan'),
    },
    { ref: CITY, name: 'name', value: 'R', known: { country: 'Italy' }, completion: whole('Roma') },
    { ref: CITY, name: 'name', value: 'R', known: { country: 'France' }, completion: nothing },
    { ref: CITY, name: 'country', value: '', completion: nothing },
    { ref: TRAVEL, name: 'wish', value: 'a', completion: nothing },
    { ref: TRAVEL, name: 'no-such-argument', value: 'a', completion: nothing },
    { ref: TRAVEL, name: 'toString', value: 'a', completion: nothing },
    { ref: { type: 'ref/prompt', name: 'silent' }, name: 'a', value: 'a', completion: nothing },
    {
      ref: { ...TRAVEL, title: 'Travel' },
      name: 'country',
      value: 'F',
      completion: whole('France'),
    },
  ])('§4.4 $ref.type, $name "$value" with $known has $completion.values', async (row) => {
    const { ref, name, value, known, completion } = row;
    const context = known && { arguments: known };
    const answer = await complete({ ref, argument: { name, value }, ...(context && { context }) });
    expect(answer).toEqual({ jsonrpc: '2.0', result: { completion }, id: 1 });
  });

  test.each([
    { count: 99, sent: 99, hasMore: false },
    { count: 100, sent: 100, hasMore: false },
    { count: 101, sent: 100, hasMore: true },
    { count: 1000, sent: 100, hasMore: true },
  ])('§4.4 of $count values $sent are sent', async ({ count, sent, hasMore }) => {
    const argument = { name: 'number', value: String(count) };
    const { completion } = (await complete({ ref: TRAVEL, argument })).result;
    expect(completion.values).toEqual(Array.from({ length: sent }, (_, at) => String(at)));
    expect(completion).toMatchObject({ total: count, hasMore });
  });

  test.each([
    { context: undefined, known: {} },
    { context: {}, known: {} },
    { context: { arguments: { a: '1', b: 2, c: null, d: 'x' } }, known: { a: '1', d: 'x' } },
    { context: { arguments: ['a'] }, known: {} },
    { context: 'none', known: {} },
  ])('§4.4 with the context $context it knows $known, and the user', async ({ context, known }) => {
    const argument = { name: 'known', value: '' };
    const { result } = await complete({ ref: TRAVEL, argument, context });
    expect(result.completion.values).toEqual([JSON.stringify(known), 'user-1']);
  });

  const argument = { name: 'country', value: '' };

  test.each([
    {
      params: { ref: { type: 'ref/prompt', name: 'travle' }, argument },
      names: 'travle',
      message: 'Unknown prompt: travle. Did you mean travel?',
    },
    {
      params: { ref: { type: 'ref/prompt', name: 'toString' }, argument },
      names: 'toString',
      message: 'Unknown prompt: toString.',
    },
    {
      params: { ref: { type: 'ref/resource', uri: 'city://Italy/Roma' }, argument },
      names: 'city',
      message: 'Unknown resource template: city://Italy/Roma.',
    },
    { params: { ref: { type: 'ref/prompt', uri: 'travel' }, argument }, names: 'ref' },
    { params: { ref: { type: 'ref/prompt', name: 1 }, argument }, names: 'ref' },
    { params: { ref: { type: 'ref/tool', name: 'travel' }, argument }, names: 'ref' },
    { params: { ref: 'travel', argument }, names: 'ref' },
    { params: { ref: TRAVEL }, names: 'argument' },
    { params: { ref: TRAVEL, argument: 'country' }, names: 'argument' },
    { params: { ref: TRAVEL, argument: { name: 'country' } }, names: 'argument.value' },
    { params: { ref: TRAVEL, argument: { name: 'country', value: 1 } }, names: 'argument.value' },
    { params: { ref: TRAVEL, argument: { value: '' } }, names: 'argument.name' },
    { params: {}, names: 'ref' },
    { params: undefined, names: 'ref' },
    { params: [TRAVEL], names: 'object' },
  ])('§4.4 $params is -32602', async ({ params, names, message = 'Invalid params' }) => {
    const { error, id } = await complete(params);
    expect(id).toBe(1);
    expect(error).toMatchObject({ code: -32602, message });
    expect(error.data.details).toContain(names);
  });

  test('§7.1 a completer that throws is -32603, and says nothing of why', async () => {
    const answer = await complete({ ref: TRAVEL, argument: { name: 'broken', value: '' } });
    expect(answer.error).toMatchObject({ code: -32603 });
    expect(JSON.stringify(answer)).not.toContain('secret');
  });
});
