// postern completion: what bash offers with the script, and that the scripts of all shells know every option.
import { spawnSync } from 'node:child_process';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { toFlag } from '../../src/cli/command-line/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, runPostern } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';

let script = '';

beforeAll(async () => {
  script = (await runPostern({}, { args: ['completion', 'bash'] })).stdout;
});
afterEach(endPosterns);

/** What bash offers once Tab is pressed behind the last of these words, which may be empty. */
function complete(words: readonly string[], cwd = '/'): readonly string[] {
  const press =
    'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postern; printf "%s\\n" "${COMPREPLY[@]}"';
  const { stdout, stderr } = spawnSync('bash', ['-c', `${script}\n${press}`, 'bash', ...words], {
    encoding: 'utf8',
    cwd,
  });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

test.each([
  { typed: ['d'], offered: COMMANDS.flatMap(({ name }) => (name.startsWith('d') ? [name] : [])) },
  { typed: ['rules', ''], offered: ['test', 'replay'] },
  { typed: ['rules', 'test', '--cl'], offered: ['--claims', '--client'] },
  { typed: ['start', '--p'], offered: ['--port'] },
  { typed: ['start', '--port', ''], offered: [] },
  { typed: ['completion', ''], offered: ['bash', 'zsh', 'fish'] },
  { typed: ['connect', 'cur'], offered: ['cursor', 'curl'] },
  { typed: ['help', 'loc'], offered: ['lock'] },
  { typed: ['--v'], offered: ['--version'] },
])('§20.4 completion: bash offers $offered after $typed', ({ typed, offered }) => {
  expect(complete(['postern', ...typed])).toEqual(offered);
});

test('§20.4 completion: bash offers every first word', () => {
  const words = new Set(COMMANDS.map(({ name }) => name.split(' ')[0]));
  expect(complete(['postern', ''])).toEqual([...words, 'help']);
});

test('§20.4 completion: bash offers files where a file is wanted', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'my servers.json', '{}');
  await writeFileIn(cwd, 'mcp.json', '{}');
  const offered = complete(['postern', 'dev', '--config', 'm'], cwd);
  expect([...offered].sort()).toEqual(['mcp.json', 'my servers.json']);
});

test.each(['bash', 'zsh', 'fish'])('§20.4 completion: %s knows every option', async (shell) => {
  const { code, stdout } = await runInside({}, { args: ['completion', shell] });
  expect(code).toBe(0);
  const options = COMMANDS.flatMap((command) => Object.keys(command.options).map(toFlag));
  for (const option of options)
    expect(stdout).toContain(shell === 'fish' ? `-l ${option.slice(2)} ` : option);
});

test.each([
  { args: [], says: 'postern completion needs SHELL: bash, zsh, fish.' },
  { args: ['zhs'], says: 'SHELL: "zhs" is not one of bash, zsh, fish. Did you mean zsh?' },
])('§20.4 completion: $args is refused', async ({ args, says }) => {
  const { code, stderr } = await runInside({}, { args: ['completion', ...args] });
  expect({ code, first: stderr.split('\n')[0] }).toEqual({ code: 2, first: says });
});
