// resources/templates/list and resources whose URIs follow a template.
import { beforeAll, describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  defineResource,
  defineResourceTemplate,
} from '../../../../src/index.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const echo = (variables: Readonly<Record<string, string>>) => ({ text: JSON.stringify(variables) });

const catalog = createLocalCatalog({
  resources: [
    defineResource({
      uri: 'item://fixed',
      name: 'Fixed',
      description: 'Has a URI of its own that a template would match, too.',
      mimeType: 'text/plain',
      read: () => ({ text: 'fixed' }),
    }),
  ],
  resourceTemplates: [
    defineResourceTemplate({
      uriTemplate: 'item://{id}',
      name: 'item',
      description: 'One segment.',
      mimeType: 'application/json',
      read: (variables) => (variables.id === 'gone' ? undefined : echo(variables)),
    }),
    defineResourceTemplate({
      uriTemplate: 'file:///{+path}',
      name: 'file',
      description: 'Several segments.',
      read: async (variables) => echo(variables),
    }),
    defineResourceTemplate({
      uriTemplate: 'db://{table}/rows/{row}.json?v=(1+)',
      name: 'row',
      description: 'Two variables, and text that an expression would take for more.',
      read: echo,
    }),
    defineResourceTemplate({
      uriTemplate: 'bytes://{id}',
      name: 'bytes',
      description: 'Bytes of a type that the content names itself.',
      mimeType: 'application/octet-stream',
      read: () => ({ blob: 'AAEC' }),
    }),
    defineResourceTemplate({
      uriTemplate: 'broken://{id}',
      name: 'broken',
      description: 'Throws.',
      read: () => {
        throw new Error('a secret nobody may see');
      },
    }),
    defineResourceTemplate({
      uriTemplate: 'who://{id}',
      name: 'who',
      description: 'Knows the caller.',
      read: ({ id }, { user }) => ({ text: `${id} of ${user?.sub}` }),
    }),
    defineResourceTemplate({
      uriTemplate: 'repo://{owner}/{+path}/at/{ref}.txt',
      name: 'repo',
      description: 'Several segments in the middle.',
      read: echo,
    }),
    defineResourceTemplate({
      uriTemplate: 'slow://{a}-{b}-{c}',
      name: 'slow',
      description: 'Can be matched in many ways.',
      read: echo,
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const read = async (uri: unknown) => (await gateway.call(session, 'resources/read', { uri })).json;

describe('templated reads', () => {
  test.each([
    { uri: 'item://1', variables: { id: '1' } },
    { uri: 'item://a%20b%2Fc', variables: { id: 'a b/c' } },
    { uri: 'item://%C3%BC', variables: { id: 'ü' } },
    { uri: 'item://ü', variables: { id: 'ü' } },
    { uri: 'item://a+b', variables: { id: 'a+b' } },
    { uri: 'file:///a', variables: { path: 'a' } },
    { uri: 'file:///a/b/c.txt', variables: { path: 'a/b/c.txt' } },
    { uri: 'file:///a/%2e%2e/b', variables: { path: 'a/../b' } },
    { uri: 'db://users/rows/7.json?v=(1+)', variables: { table: 'users', row: '7' } },
    { uri: 'db://users/rows/7.8.json?v=(1+)', variables: { table: 'users', row: '7.8' } },
    { uri: 'slow://1-2-3', variables: { a: '1', b: '2', c: '3' } },
    { uri: 'slow://-1-2-3', variables: { a: '-1', b: '2', c: '3' } },
    { uri: 'slow://1%2D-2-3', variables: { a: '1-', b: '2', c: '3' } },
    { uri: 'repo://me/a/at/b.txt', variables: { owner: 'me', path: 'a', ref: 'b' } },
    { uri: 'repo://me/a/at/b/at/c.txt', variables: { owner: 'me', path: 'a/at/b', ref: 'c' } },
    { uri: 'repo://me/at/at/at.txt', variables: { owner: 'me', path: 'at', ref: 'at' } },
    { uri: 'repo://me/a?b#c/at/d.txt', variables: { owner: 'me', path: 'a?b#c', ref: 'd' } },
  ])('§2.7 $uri is read with $variables', async ({ uri, variables }) => {
    const { result } = await read(uri);
    const [content] = result.contents;
    expect(result.contents).toHaveLength(1);
    expect(content.uri).toBe(uri);
    expect(JSON.parse(content.text)).toEqual(variables);
  });

  test('§2.7 the type of the template stands on what was read, where it has one', async () => {
    expect((await read('item://1')).result.contents[0]).toHaveProperty(
      'mimeType',
      'application/json',
    );
    expect((await read('file:///a')).result.contents[0]).not.toHaveProperty('mimeType');
    expect((await read('bytes://1')).result).toEqual({
      contents: [{ uri: 'bytes://1', mimeType: 'application/octet-stream', blob: 'AAEC' }],
    });
  });

  test('§2.7 a resource with the URI itself comes before a template', async () => {
    expect((await read('item://fixed')).result.contents[0].text).toBe('fixed');
  });

  test('§2.7 a template knows the caller', async () => {
    expect((await read('who://x')).result.contents[0].text).toBe('x of user-1');
  });

  test.each([
    { why: 'read answers undefined', uri: 'item://gone' },
    { why: 'the variable is empty', uri: 'item://' },
    { why: 'there is a slash in one segment', uri: 'item://a/b' },
    { why: 'there is a query after the segment', uri: 'item://a?b' },
    { why: 'the percent-encoding is broken', uri: 'item://%' },
    { why: 'the percent-encoding is no UTF-8', uri: 'item://%ff' },
    { why: 'the path is empty', uri: 'file:///' },
    { why: 'the case differs', uri: 'ITEM://1' },
    { why: 'something stands before', uri: 'x item://1' },
    { why: 'the template’s text is no expression', uri: 'db://users/rows/7xjson?v=(1+)' },
    { why: 'the template’s text is no expression', uri: 'db://users/rows/7.json?v=111' },
    { why: 'a variable is empty', uri: 'slow://1--3' },
    { why: 'a variable is empty', uri: 'slow://1-2-' },
    { why: 'a variable is missing', uri: 'slow://1-2' },
    { why: 'the middle is empty', uri: 'repo://me/at/b.txt' },
    { why: 'the middle is empty', uri: 'repo://me//at/b.txt' },
    { why: 'the first is empty', uri: 'repo:///a/at/b.txt' },
    { why: 'the last is empty', uri: 'repo://me/a/at/.txt' },
    { why: 'there is a slash in the last', uri: 'repo://me/a/at/b/c.txt' },
    { why: 'the texts overlap', uri: 'repo://me/a/at.txt' },
    { why: 'no template is near', uri: 'nowhere://1' },
    { why: 'it is empty', uri: '' },
  ])('§2.7 $uri is an unknown resource: $why', async ({ uri }) => {
    const { error, id } = await read(uri);
    expect(id).toBe(1);
    expect(error).toEqual({
      code: -32602,
      message: expect.stringMatching(/^Unknown resource: .+\.$/),
      data: { details: expect.stringContaining('Unknown resource'), uri },
    });
  });

  test('§2.7 a URI made to be slow is matched as fast as any', async () => {
    // Of a matcher that tries all ways, minutes; the test's time runs out.
    const { error } = await read(`slow://${'-'.repeat(5000)}/`);
    expect(error).toMatchObject({ code: -32602 });
  }, 10_000);

  test('§7.1 a template that throws is -32603, and says nothing of why', async () => {
    const { status, json, text } = await gateway.call(session, 'resources/read', {
      uri: 'broken://1',
    });
    expect(status).toBe(200);
    expect(json.error).toMatchObject({ code: -32603 });
    expect(text).not.toContain('secret');
  });

  test('§4.4 templates are listed apart from resources', async () => {
    const { resources } = (await gateway.call(session, 'resources/list')).json.result;
    const { resourceTemplates } = (await gateway.call(session, 'resources/templates/list')).json
      .result;
    expect(resources.map(({ uri }: { uri: string }) => uri)).toEqual(['item://fixed']);
    expect(resourceTemplates.map(({ name }: { name: string }) => name)).toEqual([
      'item',
      'file',
      'row',
      'bytes',
      'broken',
      'who',
      'repo',
      'slow',
    ]);
  });
});
