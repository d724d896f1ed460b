// npm run test:vectors -- <folder>: the Wycheproof vectors against the gateway's token checks.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readCorpus } from './vectors/corpus.ts';
import { type Outcome, runFreshKeys, runGroup } from './vectors/run.ts';

const FILES = ['json_web_signature_test.json', 'json_web_key_test.json'] as const;

const folder = process.argv[2];
const missing = FILES.filter((name) => folder === undefined || !existsSync(join(folder, name)));
if (folder === undefined || missing.length > 0) {
  console.error(`Usage: npm run test:vectors -- <folder>

The folder holds ${FILES.join(' and ')}
of Wycheproof (testvectors_v1 of https://github.com/C2SP/wycheproof).`);
  if (folder !== undefined) console.error(`\nNot found in ${folder}: ${missing.join(', ')}`);
  process.exit(2);
}

const outcomes: Outcome[] = [];
for (const name of FILES) {
  const ofFile: Outcome[] = [];
  for (const group of readCorpus(folder, name)) ofFile.push(await runGroup(group));
  printOutcomes(name, ofFile);
  outcomes.push(...ofFile);
}
const fresh = await runFreshKeys();
printOutcomes('Tokens signed anew', [fresh]);
outcomes.push(fresh);

const deviations = outcomes.flatMap((outcome) =>
  outcome.deviations.map((what) => `${outcome.group}: ${what}`),
);
const sumOf = (member: 'vectors' | 'accepted' | 'refused' | 'controls') =>
  outcomes.reduce((sum, outcome) => sum + outcome[member], 0);
for (const deviation of deviations) console.error(`DEVIATION ${deviation}`);
console.log(
  `${sumOf('vectors')} vectors: ${sumOf('accepted')} accepted, ${sumOf('refused')} refused; ${sumOf('controls')} controls; ${deviations.length} deviations`,
);
process.exit(deviations.length === 0 ? 0 : 1);

function printOutcomes(title: string, rows: readonly Outcome[]): void {
  console.log(`\n${title}`);
  console.table(
    rows.map(({ deviations: found, note, ...row }) => ({
      ...row,
      deviations: found.length,
      'why a good signature is refused': note,
    })),
  );
}
