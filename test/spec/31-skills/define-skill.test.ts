// §31: skills of authors: a folder, read once.
import { createHash } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineResource, defineSkill } from '../../../src/index.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const HEAD = '---\nname: refunds\ndescription: Refunds a customer.\n---\n';

/** A folder of that name with these files. */
async function writeSkill(
  files: Readonly<Record<string, string | Buffer>>,
  name = 'refunds',
): Promise<string> {
  const { path } = closeAfterTest(await createTemporaryFolder());
  const folder = join(path, name);
  await mkdir(folder);
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  return folder;
}

const digestOf = (content: string | Buffer) =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`;

test('§31.2 defineSkill: all files with digest and size, and the frontmatter as it was written', async () => {
  const manifest =
    '---\nname: refunds\ndescription: >-\n  Refunds\n  a customer.\nmetadata:\n  version: "1.0"\n  day: 2026-11-26\nallowed-tools: [Read, Bash]\n---\n# Refunds\n';
  const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff]);
  const files = {
    'SKILL.md': manifest,
    'assets/logo.png': picture,
    'notes/what is new?.md': 'Ünïcode\n',
    '.hidden': 'x',
    '.git/config': 'x',
  };
  const folder = await writeSkill(files);
  const { description } = defineSkill({ folder, prefix: 'acme/billing' });
  const root = 'skill://acme/billing/refunds';
  expect(description).toEqual({
    uri: `${root}/SKILL.md`,
    frontmatter: {
      name: 'refunds',
      description: 'Refunds a customer.',
      metadata: { version: '1.0', day: '2026-11-26' },
      'allowed-tools': ['Read', 'Bash'],
    },
    resources: [
      { uri: `${root}/SKILL.md`, digest: digestOf(manifest), size: manifest.length },
      { uri: `${root}/assets/logo.png`, digest: digestOf(picture), size: 5 },
      {
        uri: `${root}/notes/what%20is%20new%3F.md`,
        digest: digestOf('Ünïcode\n'),
        size: Buffer.byteLength('Ünïcode\n'),
      },
    ],
  });
});

test('§31.2 what is read has the digest that is listed, whatever happens to the folder', async () => {
  const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff]);
  const folder = await writeSkill({
    'SKILL.md': `\ufeff${HEAD}\r\n`,
    'logo.png': picture,
    'empty.txt': '',
  });
  const catalog = createLocalCatalog({ skills: [defineSkill({ folder: pathToFileURL(folder) })] });
  await writeFile(join(folder, 'SKILL.md'), 'changed');
  const gateway = closeAfterTest(await startGateway({ deps: { catalog } }));
  const { json } = await stateless(gateway, 'skills/list');
  const [{ resources }] = json.result.skills;
  expect(resources).toHaveLength(3);
  for (const { uri, digest, size } of resources) {
    const [content] = (await stateless(gateway, 'resources/read', { uri })).json.result.contents;
    const bytes =
      content.text === undefined
        ? Buffer.from(content.blob, 'base64')
        : Buffer.from(content.text, 'utf8');
    expect([digestOf(bytes), bytes.length]).toEqual([digest, size]);
  }
  const listed = (await stateless(gateway, 'resources/list')).json.result.resources;
  expect(listed).toEqual([
    {
      uri: 'skill://refunds/SKILL.md',
      name: 'refunds',
      description: 'Refunds a customer.',
      mimeType: 'text/markdown',
      size: expect.any(Number),
    },
  ]);
});

test('§31.1 a catalogue without skills offers none', async () => {
  const gateway = closeAfterTest(await startGateway({ deps: { catalog: createLocalCatalog({}) } }));
  for (const method of ['skills/list', 'skills/get', 'resources/directory/read']) {
    const { status, json } = await stateless(gateway, method, { uri: 'skill://a/SKILL.md' });
    expect([status, json.error.code]).toEqual([404, -32601]);
  }
});

test('§31.2 a skill in the folder of another one is both its own and a part of that', async () => {
  const inner = '---\nname: inner\ndescription: Inner.\n---\n';
  const folder = await writeSkill({ 'SKILL.md': HEAD, 'inner/SKILL.md': inner });
  const catalog = createLocalCatalog({
    skills: [
      defineSkill({ folder }),
      defineSkill({ folder: join(folder, 'inner'), prefix: 'refunds' }),
    ],
  });
  const gateway = closeAfterTest(await startGateway({ deps: { catalog } }));
  const { json } = await stateless(gateway, 'skills/list');
  expect(json.result.skills.map(({ uri }: { uri: string }) => uri)).toEqual([
    'skill://refunds/SKILL.md',
    'skill://refunds/inner/SKILL.md',
  ]);
});

describe('what is wrong is said with file and line', () => {
  test.each([
    ['no frontmatter', '# Refunds\n', ':1: a SKILL.md begins with a line ---'],
    ['no end', '---\nname: refunds\n', ':1: the YAML that begins here has no line ---'],
    ['broken YAML', '---\nname: refunds\n  description: x\n---\n', ':2: This is not YAML'],
    ['a list', '---\n- name\n---\n', ':2: names and their values are expected'],
    ['no name', '---\ndescription: x\n---\n', ':1: name is missing'],
    ['a name with capitals', '---\ndescription: x\nname: Refunds\n---\n', ':3: name is "Refunds"'],
    ['two hyphens', '---\nname: re--funds\n---\n', ':2: name is "re--funds"'],
    ['a name that is a number', '---\nname: 1\n---\n', ':2: name must be 1 to 64'],
    [
      'a name that is not the folder’s',
      '---\n\nname: refund\n---\n',
      ':3: name is "refund", and the folder is called "refunds"',
    ],
    ['no description', '---\nname: refunds\n---\n', ':1: description is missing'],
    [
      'a long description',
      `---\nname: refunds\ndescription: ${'x'.repeat(1025)}\n---\n`,
      ':3: description must be a text of 1 to 1024',
    ],
    [
      'a member twice',
      `${HEAD.slice(0, -4)}license: a\nlicense: b\n---\n`,
      ':5: "license" is there twice',
    ],
    [
      'a name that is kept for MCP',
      `${HEAD.slice(0, -4)}metadata:\n  io.modelcontextprotocol/x: 1\n---\n`,
      ':5: metadata must have no names that begin with io.modelcontextprotocol/',
    ],
    ['no number of JSON', `${HEAD.slice(0, -4)}size: .inf\n---\n`, ':4: JSON has no such number'],
  ])('§31.2 %s', async (_what, manifest, problem) => {
    const folder = await writeSkill({ 'SKILL.md': manifest });
    expect(() => defineSkill({ folder })).toThrow(`${join(folder, 'SKILL.md')}${problem}`);
  });

  test('§31.2 no SKILL.md, one that is no text, no folder, a link, too much', async () => {
    const none = await writeSkill({ 'README.md': '' });
    expect(() => defineSkill({ folder: none })).toThrow(
      `${join(none, 'SKILL.md')}: it is not there`,
    );
    const binary = await writeSkill({ 'SKILL.md': Buffer.from([0xff, 0xfe]) });
    expect(() => defineSkill({ folder: binary })).toThrow('it is no text in UTF-8');
    expect(() => defineSkill({ folder: join(none, 'nowhere') })).toThrow('ENOENT');
    const linked = await writeSkill({ 'SKILL.md': HEAD });
    await symlink('/etc/passwd', join(linked, 'notes.md'));
    expect(() => defineSkill({ folder: linked })).toThrow(
      `${join(linked, 'notes.md')}: this is no file`,
    );
    const many = Object.fromEntries(Array.from({ length: 512 }, (_, at) => [`${at}.md`, '']));
    const crowded = await writeSkill({ 'SKILL.md': HEAD, ...many });
    expect(() => defineSkill({ folder: crowded })).toThrow('a skill may have 512 files');
    const large = await writeSkill({ 'SKILL.md': HEAD, 'a.bin': Buffer.alloc(16_777_216) });
    expect(() => defineSkill({ folder: large })).toThrow('a skill may have 16777216 bytes');
  });

  test.each(['', '/', 'a//b', '../a', 'a/..', 'a b', 'ä', 1])(
    '§31.2 the prefix %j',
    async (prefix) => {
      const folder = await writeSkill({ 'SKILL.md': HEAD });
      expect(() => defineSkill({ folder, prefix: prefix as string })).toThrow('Skill: prefix is');
    },
  );

  test('§31.2 a folder that is no path, and a member that is not known', () => {
    expect(() => defineSkill({ folder: 1 as unknown as string })).toThrow(
      'folder must be the path',
    );
    expect(() => defineSkill({ folder: new URL('https://example.com/') })).toThrow(
      'folder must be the path',
    );
    expect(() => defineSkill({ folder: '.', prefx: 'a' } as { folder: string })).toThrow(
      'Did you mean "prefix"?',
    );
  });

  test('§31.2 two things with one URI', async () => {
    const folder = await writeSkill({ 'SKILL.md': HEAD, 'a.md': '' });
    const skill = defineSkill({ folder });
    expect(() => createLocalCatalog({ skills: [skill, skill] })).toThrow('There are two skills');
    const resource = defineResource({
      uri: 'skill://refunds/a.md',
      name: 'a',
      description: '',
      mimeType: 'text/plain',
      read: () => ({ text: '' }),
    });
    expect(() => createLocalCatalog({ skills: [skill], resources: [resource] })).toThrow(
      'There are two resources with the name skill://refunds/a.md',
    );
  });
});
