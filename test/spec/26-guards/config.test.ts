// §26.1: `guards` of the configuration file, and what is wrong with them, told at start.
import { writeFile } from 'node:fs/promises';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { createGatewayFileSchema } from '../../../src/gateway/configuration/gateway-file.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { findProblems, readFile } from '../../support/upstreams/gateway-file.ts';

const SERVERS = {
  wiki: { url: 'https://wiki.example.com/mcp' },
  mine: {
    url: 'https://mine.example.com/mcp',
    auth: { type: 'forward', audience: 'https://mine.example.com' },
  },
  program: { command: 'node', isolation: 'user' },
};

const fileWith = (guard: object) => ({ mcpServers: SERVERS, guards: [guard] });

const GOOD = [
  { name: 'a', on: ['tools/call'], use: { http: { url: 'https://guard.example.com/judge' } } },
  {
    name: 'b',
    on: ['tools/result', 'sampling'],
    servers: ['wiki'],
    tools: ['wiki__*'],
    use: {
      http: {
        url: 'http://127.0.0.1:9/x',
        headers: { authorization: 'Bearer x' },
        timeout: 100,
        version: 'sep-2624',
      },
    },
    onError: 'pass',
  },
  { name: 'c', on: ['tools/list'], use: { mcp: 'wiki', interceptor: 'pii', timeout: 500 } },
  { name: 'd', on: ['tools/call'], use: { module: './guard.mjs' } },
  { name: 'e', on: ['tools/call'], use: { builtIn: 'secrets', action: 'refuse' } },
  { name: 'f', on: ['tools/call'], use: { builtIn: 'size', maxBytes: 10 } },
  { name: 'g', on: ['tools/call'], use: { builtIn: 'links', hosts: ['*.example.com'] } },
];

const isValid = new Ajv({ strict: false }).compile(createGatewayFileSchema());

test.each(GOOD)('§26.1 guard $name is taken, by the schema as well', async (guard) => {
  const options = { readText: () => '' };
  expect(await findProblems(fileWith(guard), options)).toEqual([]);
  expect(isValid(fileWith(guard))).toBe(true);
  const { guards } = await readFile(fileWith(guard), options);
  expect(guards?.[0]?.name).toBe(guard.name);
});

const USE = { builtIn: 'secrets' };

const BAD = [
  { guard: { on: ['tools/call'], use: USE }, problem: '"name" is missing' },
  { guard: { name: 'a', use: USE }, problem: '"on" is missing' },
  { guard: { name: 'a', on: ['tools/call'] }, problem: '"use" is missing' },
  { guard: { name: 'A b', on: ['tools/call'], use: USE }, problem: 'in lower case' },
  { guard: { name: 'a', on: [], use: USE }, problem: 'The list is empty' },
  { guard: { name: 'a', on: ['tools/calls'], use: USE }, problem: '"tools/calls" is not valid' },
  { guard: { name: 'a', on: ['tools/call'], use: {} }, problem: 'It names no guard' },
  {
    guard: { name: 'a', on: ['tools/call'], use: { ...USE, module: './a.mjs' } },
    problem: 'It names module and builtIn',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { builtIn: 'size' } },
    problem: '"maxBytes" is missing',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { builtIn: 'links' } },
    problem: '"hosts" is missing',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { ...USE, hosts: ['a.example'] } },
    problem: 'hosts has no effect here',
  },
  {
    guard: {
      name: 'a',
      on: ['tools/call'],
      use: { http: { url: 'https://a.example' }, timeout: 9 },
    },
    problem: 'timeout has no effect here',
  },
  { guard: { name: 'a', on: ['tools/call'], use: { http: {} } }, problem: '"url" is missing' },
  ...['Host', 'TE', 'content-length', 'Content-Type', 'accept', 'Traceparent'].map((name) => ({
    guard: {
      name: 'a',
      on: ['tools/call'],
      use: { http: { url: 'https://a.example', headers: { [name]: '1' } } },
    },
    problem: `The header ${name} cannot be set: it belongs to the connection, or Postern sets it itself.`,
  })),
  {
    guard: {
      name: 'a',
      on: ['tools/call'],
      use: { http: { url: 'https://a.example', headers: { 'X-Key': '1', 'x-key': '2' } } },
    },
    problem: 'The header x-key is given twice: case does not count.',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { mcp: 'wikis' } },
    problem: 'there is no server "wikis" in this file. Did you mean wiki?',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { mcp: 'mine' } },
    problem: 'mine learns who calls',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { mcp: 'program' } },
    problem: 'Give it "isolation": "shared"',
  },
  {
    guard: { name: 'a', on: ['tools/call'], servers: ['wikki'], use: USE },
    problem: 'there is no server "wikki" in this file. Did you mean wiki?',
  },
  {
    guard: { name: 'a', on: ['tools/call'], use: { module: './gone.mjs' } },
    problem: 'use.module: the file cannot be read',
  },
];

test.each(BAD)('§26.1 $guard is refused: $problem', async ({ guard, problem }) => {
  const problems = await findProblems(fileWith(guard), { hasStateSecret: true });
  expect(problems.join('\n')).toContain(problem);
});

test('§26.1 a misspelled built-in guard is told once, and its other members are not blamed', async () => {
  const guard = { name: 'a', on: ['tools/call'], use: { builtIn: 'sise', maxBytes: 10 } };
  expect(await findProblems(fileWith(guard))).toEqual([
    expect.stringContaining('"sise" is not valid. It must be secrets, '),
  ]);
});

test('§26.1 two guards of the same name are refused', async () => {
  const guard = { name: 'a', on: ['tools/call'], use: USE };
  const problems = await findProblems({ mcpServers: SERVERS, guards: [guard, guard] });
  expect(problems.join('\n')).toContain('is called a, too');
});

test('§26.1 a module that exports no guard stops the start', async () => {
  const { module } = await writeGuard('return { decision: "pass" };');
  await writeFile(module, 'export const guard = () => ({ decision: "pass" });');
  const guards = [{ name: 'g', on: ['tools/call'], use: { module } }];
  await expect(startForTest({ file: { mcpServers: {}, guards } })).rejects.toThrow(
    'has no default export that is a function',
  );
  await writeFile(module, 'export default (');
  await expect(startForTest({ file: { mcpServers: {}, guards } })).rejects.toThrow(
    'cannot be loaded',
  );
});
