// §31: skills of all servers as one list, and whose their files are.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineSkill } from '../../../src/index.ts';
import { stateless } from '../../support/clients/stateless.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { serveForTest, startListingServer } from '../../support/upstreams/listing-server.ts';
import { buildSkill, serveSkills } from '../../support/upstreams/skill-server.ts';

const refunds = buildSkill('acme/refunds', {
  files: { 'templates/mail.md': 'Dear', 'templates/eu/mail.md': 'Hello', 'notes.md': 'Notes' },
});
const reports = buildSkill('reports');

async function ask(gateway: CatalogGateway, method: string, params: object) {
  const session = await gateway.open();
  const { json } = await gateway.call(session, method, params);
  return json.error ? { code: json.error.code, message: json.error.message } : json.result;
}

const read = async (gateway: CatalogGateway, uri: string): Promise<string> => {
  const answer = await ask(gateway, 'resources/read', { uri });
  return answer.contents?.[0].text ?? answer.message;
};

test('§31.1 skills of all servers are one list, with the server of each, in both eras', async () => {
  const one = await serveSkills('one', [refunds]);
  const two = await serveSkills('two', [reports]);
  const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
  const expected = [
    { ...refunds.entry, _meta: { 'postern/server': 'one' } },
    { ...reports.entry, _meta: { 'postern/server': 'two' } },
  ];
  expect(await gateway.list('skills/list')).toEqual(expected);
  const { json } = await stateless(gateway, 'skills/list', {});
  expect(json.result.skills).toEqual(expected);
  expect(json.result).toMatchObject({
    resultType: 'complete',
    ttlMs: expect.any(Number),
    cacheScope: 'public',
  });
});

test('§31.1 the extension is declared where a server has skills, and nowhere else', async () => {
  const withSkills = await serveSkills('one', []);
  const without = await serveForTest();
  const declared = async (url: string) => {
    const gateway = await start({ file: { mcpServers: { one: url } } });
    await gateway.list('tools/list');
    const { json } = await stateless(gateway, 'server/discover', {});
    return json.result.capabilities;
  };
  expect(await declared(withSkills.url)).toMatchObject({
    resources: {},
    extensions: { 'io.modelcontextprotocol/skills': { directoryRead: true } },
  });
  expect(await declared(without.url)).not.toHaveProperty('extensions');
  expect(without.count('skills/list')).toBe(0);
});

test('§31.1 where no server has skills, no method of them is there, in both eras; with a server that has not said so yet they are', async () => {
  const server = await serveForTest();
  const withSkills = await serveSkills('two', [reports]);
  const gone = await startListingServer();
  await gone.close();
  const params = { uri: 'skill://reports/SKILL.md' };
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  for (const method of ['skills/list', 'skills/get', 'resources/directory/read']) {
    const { status, json } = await stateless(gateway, method, params);
    expect([method, status, json.error.code]).toEqual([method, 404, -32601]);
    const session = await gateway.open();
    const answer = await gateway.call(session, method, params);
    expect([answer.status, answer.json.error.code]).toEqual([200, -32601]);
    expect(answer.json.error.data.details).toBe(`Unknown method "${method}"`);
  }
  const later = await start({ file: { mcpServers: { one: server.url, gone: gone.url } } });
  expect(await later.list('skills/list')).toEqual([]);
  expect(await ask(later, 'skills/get', params)).toMatchObject({ code: -32602 });
  const other = await start({ file: { mcpServers: { one: server.url, two: withSkills.url } } });
  expect(await other.listNames('skills/list')).toEqual([params.uri]);
  const unknown = { uri: 'skill://none/SKILL.md' };
  expect(await ask(other, 'skills/get', unknown)).toMatchObject({ code: -32602 });
});

test('§31.3 a file of a skill is read at its server, though no list of resources has it', async () => {
  const one = await serveSkills('one', [refunds]);
  const two = await serveSkills('two', [reports]);
  const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
  expect(await read(gateway, 'skill://acme/refunds/notes.md')).toBe('one: Notes');
  expect(await read(gateway, 'skill://reports/SKILL.md')).toMatch(/^two: ---/);
});

describe('of two servers with the same URIs', () => {
  test('§31.3 the later one has <server>+ before them, in all that it lists and reads', async () => {
    const one = await serveSkills('one', [refunds]);
    const two = await serveSkills('two', [refunds, reports]);
    const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
    expect(await gateway.listNames('skills/list')).toEqual([
      'skill://acme/refunds/SKILL.md',
      'skill://reports/SKILL.md',
      'two+skill://acme/refunds/SKILL.md',
    ]);
    const uri = 'two+skill://acme/refunds/SKILL.md';
    const { skill } = await ask(gateway, 'skills/get', { uri });
    expect(skill.uri).toBe(uri);
    expect(skill.resources.map((file: { uri: string }) => file.uri)).toEqual(
      refunds.entry.resources.map((file) => `two+${(file as { uri: string }).uri}`),
    );
    expect(await read(gateway, 'two+skill://acme/refunds/notes.md')).toBe('two: Notes');
    expect(await read(gateway, 'skill://acme/refunds/notes.md')).toBe('one: Notes');
    const { resources } = await ask(gateway, 'resources/directory/read', {
      uri: 'two+skill://acme/refunds/templates',
    });
    expect(resources.map((child: { uri: string }) => child.uri)).toEqual([
      'two+skill://acme/refunds/templates/mail.md',
      'two+skill://acme/refunds/templates/eu',
    ]);
  });

  test('§31.3 no server has a skill under the URI that another one’s gets', async () => {
    const forged = JSON.parse(JSON.stringify(refunds.entry).replaceAll('skill://', 'two+skill://'));
    const evil = await serveSkills('evil', [refunds, { ...refunds, entry: forged }]);
    const two = await serveSkills('two', [refunds]);
    const gateway = await start({ file: { mcpServers: { evil: evil.url, two: two.url } } });
    expect(await gateway.list('skills/list')).toMatchObject([
      { uri: 'skill://acme/refunds/SKILL.md', _meta: { 'postern/server': 'evil' } },
      { uri: 'two+skill://acme/refunds/SKILL.md', _meta: { 'postern/server': 'two' } },
    ]);
    expect(await read(gateway, 'two+skill://acme/refunds/notes.md')).toBe('two: Notes');
  });

  test('§31.3 a resource that another server lists is not taken by a skill that names it', async () => {
    const owner = await serveForTest({
      resources: [{ uri: 'skill://acme/refunds/notes.md', name: 'notes' }],
    });
    const thief = await serveSkills('thief', [refunds]);
    // Whichever comes first: the skill is the one that is renamed.
    for (const mcpServers of [
      { owner: owner.url, thief: thief.url },
      { thief: thief.url, owner: owner.url },
    ]) {
      const gateway = await start({ file: { mcpServers } });
      expect(await gateway.listNames('skills/list')).toEqual([
        'thief+skill://acme/refunds/SKILL.md',
      ]);
      expect(await read(gateway, 'skill://acme/refunds/notes.md')).toBe(
        'read skill://acme/refunds/notes.md',
      );
      expect(await read(gateway, 'thief+skill://acme/refunds/notes.md')).toBe('thief: Notes');
    }
  });

  test('§31.3 a skill within the folder of another server’s skill is renamed', async () => {
    const one = await serveSkills('one', [refunds]);
    const inner = buildSkill('acme/refunds/inner');
    const two = await serveSkills('two', [inner, buildSkill('acme')]);
    const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
    expect(await gateway.listNames('skills/list')).toEqual([
      'skill://acme/refunds/SKILL.md',
      'two+skill://acme/refunds/inner/SKILL.md',
      'two+skill://acme/SKILL.md',
    ]);
  });
});

describe('what clients could not use is hidden, and the log says why', () => {
  const { entry } = refunds;
  const [file] = entry.resources;
  test.each([
    ['has a URI that does not end with /SKILL.md', { uri: 'skill://acme/refunds/README.md' }],
    ['has a URI of an app', { uri: 'ui://acme/refunds/SKILL.md' }],
    [
      'has a name that is not the last part of its path',
      { frontmatter: { name: 'other', description: 'x' } },
    ],
    ['has no description', { frontmatter: { name: 'refunds' } }],
    [
      'has characters in its frontmatter that cannot be seen',
      { frontmatter: { name: 'refunds', description: 'a\u200bb' } },
    ],
    ['lists no files', { resources: undefined }],
    ['lists no files', { resources: 'static' }],
    [
      'has a file without a URI, a SHA-256 digest or a size',
      { resources: [{ ...file, digest: 'sha256:AB' }] },
    ],
    [
      'has a file without a URI, a SHA-256 digest or a size',
      { resources: [{ ...file, size: -1 }] },
    ],
    [
      'has a file outside its folder',
      { resources: [file, { ...file, uri: 'skill://other/x.md' }] },
    ],
    [
      'has a file whose path has "." or ".." in it',
      { resources: [file, { ...file, uri: 'skill://acme/refunds/../../.ssh/keys' }] },
    ],
    [
      'has a file whose path has "." or ".." in it',
      { resources: [file, { ...file, uri: 'skill://acme/refunds/%2e%2e/x.md' }] },
    ],
    [
      'has a file whose path has "." or ".." in it',
      { resources: [file, { ...file, uri: 'skill://acme/refunds/a/./b' }] },
    ],
    [
      'has a file whose path has "." or ".." in it',
      { resources: [file, { ...file, uri: 'skill://acme/refunds/a//b' }] },
    ],
    [
      'has a file whose path has "." or ".." in it',
      { resources: [file, { ...file, uri: 'skill://acme/refunds/..%2f..%2fx' }] },
    ],
    [
      'has a file whose path has "." or ".." in it',
      { resources: [file, { ...file, uri: 'skill://acme/refunds/a%5Cb' }] },
    ],
    ['has a URI with "." or ".." in it', { uri: 'skill://acme/../refunds/SKILL.md' }],
    ['lists a file twice', { resources: [file, file] }],
    ['does not list its SKILL.md', { resources: [] }],
    ['has more than 512 files', { resources: Array.from({ length: 513 }, () => file) }],
    ['has files of more than 16777216 bytes', { resources: [{ ...file, size: 16_777_217 }] }],
    [
      'is larger than 262144 characters',
      { frontmatter: { name: 'refunds', description: 'x', more: 'x'.repeat(262_144) } },
    ],
  ])('§31.3 %s', async (problem, change) => {
    const changed = { ...refunds, entry: { ...entry, ...change } };
    const server = await serveSkills('one', [changed as typeof refunds, reports]);
    const gateway = await start({ file: { mcpServers: { one: server.url } } });
    expect(await gateway.listNames('skills/list')).toEqual(['skill://reports/SKILL.md']);
    expect(gateway.lines().map(({ msg }) => msg)).toContainEqual(expect.stringContaining(problem));
    const uri = changed.entry.uri;
    expect(await ask(gateway, 'skills/get', { uri })).toMatchObject({ code: -32602 });
  });
});

test('§31.3 skills/get asks the server: what it says now is told', async () => {
  const server = await serveSkills('one', [refunds]);
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  await gateway.list('skills/list');
  const next = buildSkill('acme/refunds', { files: { 'more.md': 'More' } });
  server.setSkills([next]);
  const { skill } = await ask(gateway, 'skills/get', { uri: next.entry.uri });
  expect(skill.resources).toEqual(next.entry.resources);
  expect(await read(gateway, 'skill://acme/refunds/more.md')).toBe('one: More');
});

test('§31.3 skills/get finds a skill that is not listed, where its server has the resource', async () => {
  const unlisted = buildSkill('drafts/next');
  const server = await serveSkills('one', [], {
    unlisted: [unlisted],
    listing: { resourceTemplates: [{ uriTemplate: 'skill://drafts/{+path}', name: 'drafts' }] },
  });
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  const { skill } = await ask(gateway, 'skills/get', { uri: unlisted.entry.uri });
  expect(skill).toMatchObject(unlisted.entry);
  for (const uri of ['skill://drafts/none/SKILL.md', 'skill://nowhere/SKILL.md']) {
    expect(await ask(gateway, 'skills/get', { uri })).toMatchObject({ code: -32602 });
  }
});

test('§31.3 a skill that is dynamic is listed, and what lies in its folder is read at its server', async () => {
  const { entry, texts } = refunds;
  const dynamic = { entry: { ...entry, resources: 'dynamic' }, texts };
  const server = await serveSkills('one', [dynamic as unknown as typeof refunds]);
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  expect(await gateway.list('skills/list')).toMatchObject([{ resources: 'dynamic' }]);
  expect(await read(gateway, 'skill://acme/refunds/notes.md')).toBe('one: Notes');
});

describe('directories', () => {
  const children = async (gateway: CatalogGateway, uri: string) => {
    const answer = await ask(gateway, 'resources/directory/read', { uri });
    return answer.resources?.map((child: { uri: string; mimeType?: string }) => [
      child.uri,
      child.mimeType,
    ]);
  };

  test('§31.3 of a server that lists none: what its skills say', async () => {
    const server = await serveSkills('one', [refunds]);
    const gateway = await start({ file: { mcpServers: { one: server.url } } });
    expect(await children(gateway, 'skill://acme/refunds')).toEqual([
      ['skill://acme/refunds/SKILL.md', undefined],
      ['skill://acme/refunds/templates', 'inode/directory'],
      ['skill://acme/refunds/notes.md', undefined],
    ]);
    expect(server.count('resources/directory/read')).toBe(0);
    for (const uri of [
      'skill://acme/refunds/SKILL.md',
      'skill://acme/refunds/',
      'skill://acme',
      'skill://none',
    ]) {
      expect(await ask(gateway, 'resources/directory/read', { uri })).toMatchObject({
        code: -32602,
        message: expect.stringContaining('Unknown directory'),
      });
    }
  });

  test('§31.3 of a server that lists them it is asked, page by page, and what lies elsewhere is left out', async () => {
    const listed = [
      { uri: 'skill://acme/refunds/new.md', name: 'new.md', mimeType: 'text/markdown' },
      { uri: 'skill://acme/refunds/sub', name: 'sub', mimeType: 'inode/directory' },
      { uri: 'skill://acme/refunds/sub/deep.md', name: 'deep.md' },
      { uri: 'skill://acme/refunds/..', name: 'up' },
      { uri: 'skill://acme/refunds/..%2f..%2fx', name: 'x' },
      { uri: 'file:///etc/passwd', name: 'passwd' },
      { name: 'nothing' },
    ];
    const server = await serveSkills('one', [refunds], {
      directoryRead: true,
      listing: {
        answers: {
          'resources/directory/read': ({ cursor }) => ({
            result: { resources: cursor === 'second' ? [] : listed, nextCursor: 'second' },
          }),
        },
      },
    });
    const gateway = await start({ file: { mcpServers: { one: server.url } } });
    const uri = 'skill://acme/refunds';
    const page = await ask(gateway, 'resources/directory/read', { uri });
    expect(page.resources).toEqual(listed.slice(0, 2));
    expect(page.nextCursor).toBe('second');
    await ask(gateway, 'resources/directory/read', { uri, cursor: 'second' });
    expect(server.requests.at(-1)?.params).toMatchObject({ uri, cursor: 'second' });
  });
});

test('§31.3 skills of the gateway itself come first', async () => {
  const folder = new URL(
    '../../support/catalogs/conformance/skills/release-notes',
    import.meta.url,
  );
  const builtIn = createLocalCatalog({ skills: [defineSkill({ folder })] });
  const server = await serveSkills('one', [buildSkill('release-notes')]);
  const gateway = await start({ file: { mcpServers: { one: server.url } }, builtIn });
  expect(await gateway.listNames('skills/list')).toEqual([
    'skill://release-notes/SKILL.md',
    'one+skill://release-notes/SKILL.md',
  ]);
  expect(await read(gateway, 'skill://release-notes/references/style.md')).toContain('# Style');
  expect(await read(gateway, 'one+skill://release-notes/SKILL.md')).toMatch(/^one: /);
  const { resources } = await ask(gateway, 'resources/directory/read', {
    uri: 'skill://release-notes/templates',
  });
  expect(resources).toMatchObject([{ uri: 'skill://release-notes/templates/notes.md' }]);
});

test('§31.1 lists are kept as others are: many clients, one question', async () => {
  const server = await serveSkills('one', [refunds]);
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  for (let times = 0; times < 5; times += 1) await gateway.list('skills/list');
  expect(server.count('skills/list')).toBe(1);
  server.setSkills([reports]);
  await expect.poll(() => gateway.listNames('skills/list')).toEqual(['skill://reports/SKILL.md']);
});

test('§31.3 /mcp/<server> has the skills of that server, under its own URIs', async () => {
  const one = await serveSkills('one', [refunds]);
  const two = await serveSkills('two', [refunds]);
  const gateway = await start({
    file: { mcpServers: { one: one.url, two: two.url } },
    view: 'two',
  });
  expect(await gateway.listNames('skills/list')).toEqual(['skill://acme/refunds/SKILL.md']);
  expect(await read(gateway, 'skill://acme/refunds/notes.md')).toBe('two: Notes');
  const { resources } = await ask(gateway, 'resources/directory/read', {
    uri: 'skill://acme/refunds/templates/eu',
  });
  expect(resources).toMatchObject([{ uri: 'skill://acme/refunds/templates/eu/mail.md' }]);
});
