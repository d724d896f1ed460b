// §32.3: postern export server.json.
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { findServerJsonProblems } from '../support/clients/server-documents.ts';
import { endPosterns, makeFolder } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';

afterEach(endPosterns);

const BASE_URL = 'https://mcp.example.com';

const run = (
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = { BASE_URL },
  cwd?: string,
) => runInside(env, { args: ['export', 'server.json', ...args], ...(cwd && { cwd }) });

test('§32.3 export: a registry takes what it prints, without anything of the provider', async () => {
  const { code, stdout, stderr } = await run();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const printed = JSON.parse(stdout);
  expect(findServerJsonProblems(printed)).toEqual([]);
  expect(printed).toMatchObject({
    name: 'com.example.mcp/postern',
    title: 'Postern',
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    websiteUrl: `${BASE_URL}/`,
    remotes: [{ type: 'streamable-http', url: `${BASE_URL}/mcp` }],
  });
});

test('§32.3 export: it follows the settings, and the options before them', async () => {
  const env = {
    BASE_URL: 'https://other.example',
    SERVER_CARD_NAME: 'com.acme/tools',
    SERVER_CARD_DESCRIPTION: 'What Acme works with.',
    SERVICE_DISPLAY_NAME: 'Acme',
    SERVICE_LOGO_URL: 'https://acme.com/logo.png',
  };
  const { stdout } = await run(['--url', 'tools.acme.com', '--as', '1.4.0-rc.1'], env);
  const printed = JSON.parse(stdout);
  expect(findServerJsonProblems(printed)).toEqual([]);
  expect(printed).toMatchObject({
    name: 'com.acme/tools',
    title: 'Acme',
    description: 'What Acme works with.',
    version: '1.4.0-rc.1',
    icons: [{ src: 'https://acme.com/logo.png' }],
    remotes: [{ url: 'https://tools.acme.com/mcp' }],
  });
});

test.each(['http://acme.com/logo.png', `https://acme.com/${'x'.repeat(255)}`])(
  '§32.3 export: the logo %s would keep the document out, and is left out',
  async (SERVICE_LOGO_URL) => {
    const { stdout } = await run([], { BASE_URL, SERVICE_LOGO_URL });
    expect(JSON.parse(stdout)).not.toHaveProperty('icons');
  },
);

test('§32.3 export --view: one view or server of the file, and no other name', async () => {
  const cwd = await makeFolder();
  const file = {
    mcpServers: { wiki: { url: 'https://wiki.example/mcp' } },
    views: { research: { title: 'Research desk' } },
  };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify(file));
  const of = (name: string) => run(['--view', name, '--config', 'mcp.json'], { BASE_URL }, cwd);
  const view = JSON.parse((await of('research')).stdout);
  expect(findServerJsonProblems(view)).toEqual([]);
  expect(view).toMatchObject({
    name: 'com.example.mcp/postern.research',
    title: 'Research desk',
    remotes: [{ url: `${BASE_URL}/mcp/research` }],
  });
  expect(JSON.parse((await of('wiki')).stdout).remotes[0].url).toBe(`${BASE_URL}/mcp/wiki`);
  const wrong = await of('reserch');
  expect([wrong.code, wrong.stdout]).toEqual([2, '']);
  expect(wrong.stderr).toContain('has no view and no server "reserch". Did you mean research?');
});

test.each([
  [[], {}, 'http://localhost:3000 is not an address that others can use'],
  [[], { BASE_URL: 'http://mcp.example.com' }, 'is not an address that others can use'],
  [['--url', 'https://localhost'], {}, 'is not an address that others can use'],
  [
    ['--url', 'ftp://a.example'],
    {},
    '--url: "ftp://a.example" is not an absolute http or https URL',
  ],
  [['--as', '^1.2.3'], { BASE_URL }, '--as: "^1.2.3" is no version.'],
  [['--view', 'research'], { BASE_URL }, '--view needs the configuration file'],
])('§32.3 export %j with %j is refused', async (args, env, says) => {
  const { code, stdout, stderr } = await run(args, env);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(says);
});

test('§32.3 export: of anything else it says what there is', async () => {
  const { code, stderr } = await runInside({ BASE_URL }, { args: ['export', 'card'] });
  expect(code).toBe(2);
  expect(stderr).toContain('WHAT must be server.json, not "card".');
});
