// Breaks lines of the rooms that hold rules, one at a time, and says whether a test of the nearest folders fails.
// `node --import tsx scripts/mutants.ts [seed] [count] [first]`: seed 46, 100 mutants, from the first. With the same sources the
// same seed breaks the same lines, so two states of the tests can be compared. Uses the working tree: end it with SIGINT only.
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { below, randomOf } from '../test/support/fuzz/seeded-random.ts';

/** Where the rules are, and the folders of test/spec that say them; the first that fits. */
const NEAREST: readonly (readonly [place: string, folders: readonly string[]])[] = [
  ['src/logins/auth/', ['5-tokens', '13-identity', '5.11-own-tokens']],
  ['src/logins/identity/', ['13-identity', '5-tokens']],
  ['src/logins/client-id-metadata/', ['4.6-client-id-metadata']],
  ['src/logins/clients/', ['4.8-register', '4.6-client-id-metadata', '22-operators']],
  ['src/logins/', ['4.6-authorize', '4.7-token', '5.11-own-tokens', '22-operators']],
  ['src/control/approvals/', ['27-approvals']],
  ['src/control/guards/', ['26-guards']],
  ['src/control/', ['25-control', '18-upstreams/rules', '28-replay']],
  ['src/http/limits/', ['8-limits']],
  ['src/mcp/session/', ['3.1-sessions', '4.4-mcp/session', '15-streams']],
];

type Break = readonly [pattern: RegExp, by: string];

const BREAKS: readonly Break[] = [
  [/ === /, ' !== '],
  [/ !== /, ' === '],
  [/ && /, ' || '],
  [/ \|\| /, ' && '],
  [/ \?\? /, ' && '],
  [/ < /, ' >= '],
  [/ > /, ' <= '],
  [/ <= /, ' > '],
  [/ >= /, ' < '],
  [/ \+ (?!=)/, ' - '],
  [/ - /, ' + '],
  [/\btrue\b/, 'false'],
  [/\bfalse\b/, 'true'],
  [/\bif \((.*)\)( \{| return.*| throw.*| continue.*)$/, 'if (!($1))$2'],
  [/^(\s*)(?:await )?[\w.]+\(.*\);$/, '$1'],
  [/^(\s*)return [^;]+;$/, '$1return undefined;'],
  [/\.some\(/, '.every('],
  [/\b(\d[\d_]*)\b/, '($1 + 1)'],
];

const NO_CODE = /^\s*(\/\/|\*|\/\*|import |export (type|interface) |type |interface |readonly )/;

interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly before: string;
  readonly after: string;
  readonly tests: readonly string[];
}

async function chooseMutants(seed: number, count: number): Promise<readonly Mutant[]> {
  const mutable: Mutant[] = [];
  const names = (await readdir('src', { recursive: true })).map((name) => `src/${name}`).sort();
  for (const file of names.filter((name) => name.endsWith('.ts'))) {
    const tests = NEAREST.find(([place]) => file.startsWith(place))?.[1];
    if (tests === undefined) continue;
    for (const [at, before] of (await readFile(file, 'utf8')).split('\n').entries()) {
      if (NO_CODE.test(before)) continue;
      const fitting = BREAKS.filter(([pattern]) => pattern.test(before));
      for (const [pattern, by] of fitting) {
        mutable.push({ file, line: at + 1, before, after: before.replace(pattern, by), tests });
      }
    }
  }
  const random = randomOf(seed, 1);
  return Array.from({ length: count }, () => mutable[below(random, mutable.length)]).filter(
    (one) => one !== undefined,
  );
}

/** The first test that fails; undefined where none does. */
async function findFailure({ file, line, after, tests }: Mutant): Promise<string | undefined> {
  const whole = await readFile(file, 'utf8');
  try {
    await writeFile(
      file,
      whole
        .split('\n')
        .with(line - 1, after)
        .join('\n'),
    );
    const folders = tests.map((folder) => `test/spec/${folder}`);
    const args = ['vitest', 'run', '--project=spec', '--bail=1', ...folders];
    await promisify(execFile)('npx', args, { maxBuffer: 2 ** 28 });
    return undefined;
  } catch (error) {
    const [failure = String(error)] = /^failed: .*$/m.exec(Object(error).stdout) ?? [];
    return failure;
  } finally {
    await writeFile(file, whole);
  }
}

const [givenSeed = 46, givenCount = 100, first = 0] = process.argv.slice(2).map(Number);
const mutants = await chooseMutants(givenSeed, givenCount);
for (const mutant of mutants.slice(first)) {
  const { file, line, before, after } = mutant;
  const failure = await findFailure(mutant);
  console.log(`${file}:${line}\n  ${before.trim()}\n  ${after.trim()}`);
  console.log(failure === undefined ? '  SURVIVED' : `  caught: ${failure}`);
}
