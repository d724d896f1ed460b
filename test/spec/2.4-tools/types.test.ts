// What the compiler tells authors: of each file in test/types/mistakes, what its first line says.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { defineResourceTemplate, defineTool } from '../../../src/index.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = 'test/types/mistakes';
const TSC = 'node_modules/typescript/bin/tsc';
const mistakes = readdirSync(`${ROOT}${FOLDER}`).filter((name) => name.endsWith('.ts'));

/** The first error of each file: all of its lines. */
const firstErrors = promisify(execFile)(
  process.execPath,
  [TSC, '--pretty', 'false', '-p', FOLDER],
  {
    cwd: ROOT,
  },
).then(
  () => new Map<string, string>(),
  ({ stdout }: { readonly stdout: string }) => {
    const errors = stdout.split(/^(?=\S)/m).map((text): [string, string] => {
      const [, file = ''] = /([^/]+)\(\d+,\d+\): error /.exec(text) ?? [];
      return [file, text];
    });
    // Of several entries with one key a map keeps the last.
    return new Map(errors.reverse());
  },
);

test.each(mistakes)('§2.4 types: of %s the compiler says what is wrong', async (name) => {
  const [, expected = ''] =
    /^\/\/ tsc: (.+)$/m.exec(readFileSync(`${ROOT}${FOLDER}/${name}`, 'utf8')) ?? [];
  expect(expected).not.toBe('');
  expect((await firstErrors).get(name)).toContain(expected);
});

describe('types: what run gets', () => {
  const described = { name: 'x', description: 'X.' };

  test('§2.4 types: arguments are those of the schema', () => {
    defineTool({
      ...described,
      inputSchema: {
        type: 'object',
        properties: {
          service: { type: 'string', 'x-mcp-header': 'Service' },
          level: { type: 'string', enum: ['low', 'high'] },
          ports: { type: 'array', items: { type: 'integer' } },
          owner: { type: ['string', 'null'] },
        },
        required: ['service'],
        additionalProperties: false,
      },
      run(args) {
        expectTypeOf(args.service).toEqualTypeOf<string>();
        expectTypeOf(args.level).toEqualTypeOf<'low' | 'high' | undefined>();
        expectTypeOf(args.ports).toEqualTypeOf<number[] | undefined>();
        expectTypeOf(args.owner).toEqualTypeOf<string | null | undefined>();
        return { content: [{ type: 'text', text: args.service }] };
      },
    });
  });

  test('§2.4 types: results may be promises of any making, and failures', () => {
    const inputSchema = { type: 'object' } as const;
    const outputSchema = {
      type: 'object',
      properties: { level: { type: 'integer' } },
      required: ['level'],
    } as const;
    defineTool({
      ...described,
      inputSchema,
      run: () => new Promise((end) => end({ content: [] })),
    });
    defineTool({ ...described, inputSchema, run: async () => ({ content: [], isError: true }) });
    defineTool({
      ...described,
      inputSchema,
      outputSchema,
      async run(args) {
        if (args.failed) return { content: [], isError: true };
        return { structuredContent: { level: 2 } };
      },
    });
  });

  test('§2.7 types: a template has the variables that it names', () => {
    defineResourceTemplate({
      ...described,
      uriTemplate: 'source://{service}/{+path}',
      complete: {
        path: (_typed, known) => {
          expectTypeOf(known).toEqualTypeOf<{
            readonly service?: string;
            readonly path?: string;
          }>();
          return [known.service ?? ''];
        },
      },
      read(variables) {
        expectTypeOf(variables).toEqualTypeOf<{
          readonly service: string;
          readonly path: string;
        }>();
        return { text: variables.path };
      },
    });
    const uriTemplate: string = 'x://{any}';
    defineResourceTemplate({
      ...described,
      uriTemplate,
      read: (variables) => ({ text: variables.any ?? '' }),
    });
  });
});
